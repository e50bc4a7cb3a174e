//! The real adapters, put together.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sandbar_domain::Code;
pub use sandbar_exec::Pager;
use sandbar_exec::Processes;
use sandbar_fs::target::FsTargets;
use sandbar_fs::{FsEngine, files};
use sandbar_git::GixGit;
use sandbar_ports::exec::{Runner as _, ViewReport};
use sandbar_ports::{PortError, PortResult};
use sandbar_store::SqlStore;

use super::system::{RandomIds, SystemClock};
use crate::config::{Config, Layer, Origin};
use crate::{Parts, Sandbar, Surroundings};

/// The largest configuration file that is read, in bytes.
const CONFIG_LIMIT: u64 = 1 << 20;

/// What an opening starts from.
#[derive(Debug, Clone)]
pub struct Opening {
    /// The caller's directory, for the project's configuration.
    pub cwd: Option<PathBuf>,
    /// Environment variables.
    pub environment: Vec<(String, String)>,
    /// What the use cases need to know of the caller.
    pub around: Surroundings,
}

impl Opening {
    fn variable(&self, name: &str) -> Option<&str> {
        let found = self.environment.iter().find(|(key, _)| key == name);
        found
            .map(|(_, value)| &**value)
            .filter(|value| !value.is_empty())
    }
}

/// Must be called first in `main`, before any thread exists: a command in a
/// sandbox is started by a hidden call of the embedder's own program.
pub fn init() {
    sandbar_exec::init();
}

/// Opens data directory, store and adapters. Errors: `bad_config`,
/// `network_file_system`, `newer_format`, `corrupt_store`.
pub async fn open(opening: Opening) -> PortResult<Sandbar> {
    let config = configure(&opening)?;
    let data = data_dir(&opening)?;
    let engine = FsEngine::open(&data)?;
    let store = match config.store_url() {
        Some(url) => SqlStore::open(url).await?,
        None => SqlStore::open_file(&data.join("sandbar.db")).await?,
    };
    Ok(compose(engine, store, data, config, opening.around))
}

/// Opens what is there already; `None` where no data was ever recorded, and
/// then nothing is made. Where the data directory cannot be written it is
/// opened for looking only. Errors: as [`open`].
pub async fn open_existing(opening: Opening) -> PortResult<Option<Sandbar>> {
    let config = configure(&opening)?;
    let data = data_dir(&opening)?;
    match files::read_small(&data.join("format"), CONFIG_LIMIT) {
        Err(error) if error.code == Code::PathNotFound => return Ok(None),
        // What is wrong with it the engine says better.
        _ => {}
    }
    let engine = match FsEngine::open(&data) {
        Err(error) if matches!(error.code, Code::ReadOnly | Code::PermissionDenied) => {
            FsEngine::open_read_only(&data)?
        }
        other => other?,
    };
    let file = data.join("sandbar.db");
    let found = match config.store_url() {
        Some(url) => SqlStore::open_existing(url).await?,
        None => SqlStore::open_existing_file(&file).await?,
    };
    // Sandboxes without a store are a finding, not the absence of data.
    let store = match (found, config.store_url()) {
        (Some(store), _) => store,
        (None, Some(url)) => SqlStore::open(url).await?,
        (None, None) => SqlStore::open_file(&file).await?,
    };
    Ok(Some(compose(engine, store, data, config, opening.around)))
}

/// Says which views work here; needs no data.
pub async fn views() -> ViewReport {
    Processes.probe().await
}

fn compose(
    engine: FsEngine,
    store: SqlStore,
    data: PathBuf,
    config: Config,
    mut around: Surroundings,
) -> Sandbar {
    let parts = Parts {
        workspaces: Arc::new(engine.clone()),
        pins: Arc::new(engine.clone()),
        objects: Arc::new(engine.clone()),
        contents: Arc::new(engine.clone()),
        targets: Arc::new(FsTargets::new(Arc::new(engine), data)),
        git: Arc::new(GixGit::new()),
        store: Arc::new(store.clone()),
        graph: Arc::new(store),
        runner: Arc::new(Processes),
        clock: Arc::new(SystemClock),
        ids: Arc::new(RandomIds),
    };
    // Roots are resolved paths, and the home directory is compared with them.
    around.home = around.home.and_then(|home| files::canonicalize(&home).ok());
    Sandbar::new(parts, config, around)
}

/// Returns the data directory: `SANDBAR_DATA_DIR`, else `sandbar` in
/// `XDG_DATA_HOME`, else in `~/.local/share`.
pub fn data_dir(opening: &Opening) -> PortResult<PathBuf> {
    let home = || {
        opening
            .around
            .home
            .clone()
            .filter(|home| home.is_absolute())
    };
    let path = match (
        opening.variable("SANDBAR_DATA_DIR"),
        opening.variable("XDG_DATA_HOME"),
    ) {
        (Some(own), _) => PathBuf::from(own),
        (None, Some(data)) => Path::new(data).join("sandbar"),
        (None, None) => home()
            .ok_or_else(|| {
                PortError::new(Code::BadConfig, "find the data directory: HOME is not set")
                    .with_hint("set SANDBAR_DATA_DIR")
            })?
            .join(".local/share/sandbar"),
    };
    if path.is_absolute() {
        return Ok(path);
    }
    let message = format!(
        "use {} as data directory: it is not absolute",
        path.display()
    );
    Err(PortError::new(Code::BadConfig, message))
}

/// Reads every layer of configuration.
pub fn configure(opening: &Opening) -> PortResult<Config> {
    let mut config = Config::default();
    if let Some(path) = user_file(opening)
        && files::exists(&path)
    {
        config.add(Layer::parse(
            &read(&path)?,
            Origin::User(path.display().to_string()),
        )?)?;
    }
    if let Some(path) = opening.cwd.as_deref().and_then(project_file) {
        config.add(Layer::parse(
            &read(&path)?,
            Origin::Project(path.display().to_string()),
        )?)?;
    }
    for layer in Layer::from_environment(opening.environment.iter().cloned()) {
        config.add(layer)?;
    }
    Ok(config)
}

fn user_file(opening: &Opening) -> Option<PathBuf> {
    let base = match opening.variable("XDG_CONFIG_HOME") {
        Some(path) => PathBuf::from(path),
        None => opening.around.home.clone()?.join(".config"),
    };
    Some(base.join("sandbar/config.toml"))
}

/// Finds `sandbar.toml` in the caller's directory or above, no higher than
/// the checkout it is in.
fn project_file(cwd: &Path) -> Option<PathBuf> {
    for dir in cwd.ancestors() {
        let path = dir.join("sandbar.toml");
        if files::exists(&path) {
            return Some(path);
        }
        if files::exists(&dir.join(".git")) {
            return None;
        }
    }
    None
}

fn read(path: &Path) -> PortResult<String> {
    let bytes = files::read_small(path, CONFIG_LIMIT).map_err(|error| {
        PortError::new(Code::BadConfig, error.message.clone()).with_source(error)
    })?;
    String::from_utf8(bytes).map_err(|_| {
        PortError::new(
            Code::BadConfig,
            format!("read {}: it is not UTF-8", path.display()),
        )
    })
}
