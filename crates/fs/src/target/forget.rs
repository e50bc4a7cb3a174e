//! The end of retention: kept bytes of one job go. Nothing else ever does.

use std::path::Path;

use sandbar_domain::{Code, JournalId};
use sandbar_ports::{PortError, PortResult};

use crate::sys::{self, Errno, at};
use crate::workspace::remove::remove_tree;

/// Removes `<kept place>/<job id>`; a job that is gone is fine.
pub(super) fn forget(dir: &Path) -> PortResult<()> {
    let Some((place, name)) = of_kept_place(dir) else {
        let message = format!("remove {}: it is no job of a kept place", dir.display());
        return Err(PortError::new(Code::PathEscapes, message));
    };
    let place = match sys::open_dir(place) {
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(()),
        other => other.map_err(at("open", place.display()))?,
    };
    remove_tree(&place, name.as_bytes(), dir)
}

fn of_kept_place(dir: &Path) -> Option<(&Path, &str)> {
    let place = dir
        .parent()
        .filter(|place| place.is_absolute() && place.ends_with("kept"))?;
    let name = dir.file_name()?.to_str()?;
    name.parse::<JournalId>().ok()?;
    Some((place, name))
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "fixtures")]
mod tests {
    use super::*;

    #[test]
    fn only_a_job_of_a_kept_place_is_removed() {
        let root = tempfile::tempdir().expect("a directory");
        let job = root.path().join("kept/01ARZ3NDEKTSV4RRFFQ69G5FAV");
        let other = root.path().join("other/01ARZ3NDEKTSV4RRFFQ69G5FAV");
        for dir in [&job, &other] {
            std::fs::create_dir_all(dir.join("kept")).expect("a directory");
            std::fs::write(dir.join("kept/0"), "bytes").expect("a file");
        }
        assert_eq!(forget(&other).expect_err("refused").code, Code::PathEscapes);
        let above = root.path().join("kept");
        assert_eq!(forget(&above).expect_err("refused").code, Code::PathEscapes);
        forget(&job).expect("removed");
        forget(&job).expect("gone already");
        assert!(!job.exists() && other.join("kept/0").exists() && above.exists());
    }
}
