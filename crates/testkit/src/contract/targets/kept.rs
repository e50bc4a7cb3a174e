//! Finding displaced bytes, reading them, copying them out.

use sandbar_domain::{Code, Disposition, Kind};
use sandbar_ports::target::Takeout;

use super::{every_kind, executed, staged};
use crate::contract::files::{Subject, entry, file, symlink};
use crate::contract::{done, refused};

pub(super) async fn what_is_kept_is_listed_read_and_copied(subject: Subject) {
    let job = every_kind(&subject).await;
    let listed = done(subject.targets.kept(job.clone()).await, "a list of nothing");
    assert_eq!(listed, [], "nothing was displaced yet");
    staged(&subject, &job).await;
    let listed = done(subject.targets.kept(job.clone()).await, "a list of nothing");
    assert_eq!(listed, [], "what is staged was not displaced");
    executed(&subject, &job).await;
    // The same before and after the end of the job.
    for ended in [false, true] {
        if ended {
            done(subject.targets.settle(job.clone()).await, "settling");
        }
        let mut listed = done(subject.targets.kept(job.clone()).await, "listing");
        listed.sort_by(|a, b| a.path.cmp(&b.path));
        let found: Vec<_> = listed
            .iter()
            .map(|kept| (kept.path.as_str(), kept.entry, kept.size))
            .collect();
        let expected = [
            ("dir/a", entry(Kind::File, b"a"), 1),
            ("remove", entry(Kind::File, b"gone"), 4),
            ("remove-link", entry(Kind::Symlink, b"gone"), 4),
            ("replace", entry(Kind::File, b"old"), 3),
            ("replace-type", entry(Kind::Symlink, b"old"), 3),
        ];
        assert_eq!(found, expected, "each displaced file and symlink");
        for kept in listed {
            let what = Takeout {
                entry: kept.entry,
                at: Some(kept.at.clone()),
            };
            let to = subject
                .world
                .base()
                .join(format!("out/{ended}/{}", kept.path));
            let bytes = done(subject.targets.read_out(what.clone()).await, "reading");
            done(subject.targets.copy_out(what, to.clone()).await, "copying");
            let copy = subject.world.get(&to).expect("it is there");
            assert_eq!(copy.content(), Some(&*bytes));
            assert_eq!(copy.entry(), Some(kept.entry), "{}", kept.path);
            assert!(subject.world.get(&kept.at).is_some(), "it is kept still");
        }
    }
}

pub(super) async fn nothing_is_overwritten_and_what_is_gone_is_said(subject: Subject) {
    let job = every_kind(&subject).await;
    staged(&subject, &job).await;
    executed(&subject, &job).await;
    done(subject.targets.settle(job.clone()).await, "settling");
    let listed = done(subject.targets.kept(job.clone()).await, "listing");
    let kept = listed.iter().find(|kept| kept.path.as_str() == "replace");
    let kept = kept.expect("it is kept");
    let mut what = Takeout {
        entry: kept.entry,
        at: Some(kept.at.clone()),
    };
    let to = subject.world.base().join("taken");
    for there in [file(b"theirs"), symlink("nowhere")] {
        subject.world.put(&to, there.clone());
        refused(
            subject.targets.copy_out(what.clone(), to.clone()).await,
            Code::Exists,
            Disposition::Conflict,
            "copying onto something",
        );
        assert_eq!(subject.world.get(&to), Some(there));
        subject.world.remove(&to);
    }
    // Somebody wrote to the kept file: the store may have the bytes.
    subject.world.put(&kept.at, file(b"torn"));
    done(subject.objects.put(vec![b"old".to_vec()]).await, "storing");
    let bytes = done(subject.targets.read_out(what.clone()).await, "reading");
    assert_eq!(bytes, b"old");
    done(
        subject.targets.copy_out(what.clone(), to.clone()).await,
        "copying",
    );
    assert_eq!(subject.world.get(&to), Some(file(b"old")));
    subject.world.remove(&to);

    what.entry = entry(Kind::File, b"never stored");
    let read = subject.targets.read_out(what.clone()).await;
    let copied = subject.targets.copy_out(what, to.clone()).await;
    refused(
        read.map(drop),
        Code::KeptGone,
        Disposition::Permanent,
        "reading",
    );
    refused(copied, Code::KeptGone, Disposition::Permanent, "copying");
    assert_eq!(subject.world.get(&to), None);
    subject.world.remove(&job.dir);
    let listed = done(subject.targets.kept(job).await, "listing");
    assert_eq!(listed, [], "nothing is left");
}
