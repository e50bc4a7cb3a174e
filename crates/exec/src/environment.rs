//! The environment and the sockets of a command: what it gets, loses and must
//! not see. Pure but for reading our own environment.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

/// The variables that point git at a repository; a command in a sandbox never
/// inherits them.
pub const GIT_VARIABLES: &[&str] = &[
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_NAMESPACE",
    "GIT_CEILING_DIRECTORIES",
    "GIT_PREFIX",
    "GIT_SHALLOW_FILE",
    "GIT_GRAFT_FILE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INTERNAL_SUPER_PREFIX",
    "GIT_QUARANTINE_PATH",
];

/// Sockets of container engines: a daemon behind them acts on the real tree.
const ENGINE_SOCKETS: &[&str] = &[
    "/run/docker.sock",
    "/var/run/docker.sock",
    "/run/podman/podman.sock",
];

type Variables = Vec<(OsString, OsString)>;

/// Builds a command's environment from ours; `set` wins over `unset`.
pub(crate) fn environment(
    own: impl Iterator<Item = (OsString, OsString)>,
    set: &[(OsString, OsString)],
    unset: &[OsString],
) -> Variables {
    let gone = |name: &OsStr| {
        unset.iter().any(|other| other == name)
            || set.iter().any(|(other, _)| other == name)
            || GIT_VARIABLES.iter().any(|other| *other == name)
    };
    let mut variables: Variables = own.filter(|(name, _)| !gone(name)).collect();
    for (name, value) in set {
        assign(&mut variables, name, value);
    }
    variables
}

/// Sets one variable.
pub(crate) fn assign(variables: &mut Variables, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) {
    let (name, value) = (name.as_ref(), value.as_ref().to_owned());
    match variables.iter_mut().find(|(other, _)| other == name) {
        Some((_, old)) => *old = value,
        None => variables.push((name.to_owned(), value)),
    }
}

/// Finds one variable.
pub(crate) fn value<'a>(variables: &'a [(OsString, OsString)], name: &str) -> Option<&'a OsStr> {
    variables
        .iter()
        .find(|(other, _)| other == name)
        .map(|(_, value)| value.as_os_str())
}

/// Lists the paths at which a container engine may listen.
pub(crate) fn engine_sockets(variables: &[(OsString, OsString)]) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = ENGINE_SOCKETS.iter().map(PathBuf::from).collect();
    if let Some(dir) = value(variables, "XDG_RUNTIME_DIR").filter(|dir| !dir.is_empty()) {
        let dir = PathBuf::from(dir);
        paths.push(dir.join("docker.sock"));
        paths.push(dir.join("podman/podman.sock"));
    }
    for name in ["DOCKER_HOST", "CONTAINER_HOST"] {
        let path = value(variables, name).and_then(|url| url.as_bytes().strip_prefix(b"unix://"));
        if let Some(path) = path.filter(|path| path.starts_with(b"/")) {
            paths.push(PathBuf::from(OsStr::from_bytes(path)));
        }
    }
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(items: &[(&str, &str)]) -> Variables {
        items
            .iter()
            .map(|(a, b)| ((*a).into(), (*b).into()))
            .collect()
    }

    #[test]
    fn git_is_scrubbed_and_set_wins() {
        let own = pairs(&[("GIT_DIR", "/r"), ("A", "1"), ("B", "2"), ("C", "3")]);
        let set = pairs(&[("B", "new"), ("D", "4"), ("D", "5")]);
        let unset = ["C".into(), "B".into()];
        let got = environment(own.into_iter(), &set, &unset);
        assert_eq!(got, pairs(&[("A", "1"), ("B", "new"), ("D", "5")]));
    }

    #[test]
    fn sockets_named_by_the_environment_are_hidden_too() {
        let variables = pairs(&[
            ("XDG_RUNTIME_DIR", "/run/user/7"),
            ("DOCKER_HOST", "unix:///x/d.sock"),
            ("CONTAINER_HOST", "tcp://h:1"),
        ]);
        let paths = engine_sockets(&variables);
        assert!(paths.contains(&"/run/user/7/docker.sock".into()));
        assert!(paths.contains(&"/x/d.sock".into()));
        assert_eq!(paths.len(), ENGINE_SOCKETS.len() + 3);
    }
}
