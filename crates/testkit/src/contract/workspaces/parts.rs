//! Directories of explicit parts.

use sandbar_domain::{Code, Disposition};
use sandbar_ports::Cancel;
use sandbar_ports::workspace::{Assemble, Part};

use super::{back_to, everything, sandbox};
use crate::contract::files::{Subject, What, executable, file, rel, symlink};
use crate::contract::{done, refused};

/// Fills a directory like a repository's objects.
fn objects(subject: &Subject) -> std::path::PathBuf {
    let dir = subject.world.base().join("store");
    for (name, bytes) in [
        ("ab/cdef", "one"),
        ("pack/p.pack", "two"),
        ("pack/tmp_pack_x", "half"),
        ("pack/p.lock", "lock"),
        ("info/alternates", "left out"),
    ] {
        subject.world.put(&dir.join(name), file(bytes.as_bytes()));
    }
    dir
}

pub(super) async fn parts_are_assembled_in_order(subject: Subject) {
    let from = objects(&subject);
    let tree = subject.world.base().join("tree");
    subject.world.put(&tree.join("x/run"), executable(b"x"));
    subject.world.put(&tree.join("x/link"), symlink("run"));
    subject.world.put(&tree.join("hollow"), What::Directory);
    subject.world.put(&tree.join("left/out"), file(b"l"));
    let place = done(subject.workspaces.reserve().await, "reserving");
    let dest = place.join("g");
    let request = Assemble {
        dest: dest.clone(),
        pool: Some(place.join("o")),
        parts: vec![
            Part::Directory(rel("refs/heads")),
            Part::Write(rel("HEAD"), b"ref: refs/heads/main\n".to_vec()),
            Part::Write(rel("deep/er/file"), b"d".to_vec()),
            Part::Copy {
                from: tree.join("x/run"),
                to: rel("copied/run"),
            },
            Part::Copy {
                from: tree.join("missing"),
                to: rel("never"),
            },
            Part::CopyTree {
                from: tree.clone(),
                to: rel("tree"),
                except: vec!["left".to_owned()],
            },
            Part::CopyTree {
                from: tree.join("missing"),
                to: rel("never"),
                except: Vec::new(),
            },
            Part::Link {
                from: from.clone(),
                to: rel("objects"),
                except: vec!["info/alternates".to_owned()],
            },
        ],
        cancel: Cancel::new(),
    };
    let before = subject.snapshot(&from);
    done(subject.workspaces.assemble(request).await, "assembling");
    let leaf = |path: &str| subject.world.get(&dest.join(path));
    for (path, what) in [
        ("HEAD", file(b"ref: refs/heads/main\n")),
        ("refs/heads", What::Directory),
        ("deep/er/file", file(b"d")),
        ("copied/run", executable(b"x")),
        ("tree/x/run", executable(b"x")),
        ("tree/x/link", symlink("run")),
        ("tree/hollow", What::Directory),
        ("objects/ab/cdef", file(b"one")),
        ("objects/pack/p.pack", file(b"two")),
        ("objects/info", What::Directory),
    ] {
        assert_eq!(leaf(path), Some(what), "{path}");
    }
    for path in [
        "never",
        "tree/left",
        "objects/pack/tmp_pack_x",
        "objects/pack/p.lock",
        "objects/info/alternates",
    ] {
        assert_eq!(leaf(path), None, "{path} is left out");
    }
    let pool = subject.world.names(&place.join("o"));
    assert_eq!(pool, ["ab!cdef", "pack!p.pack"], "the pool is flat");
    assert_eq!(subject.snapshot(&from), before, "the source is untouched");
}

pub(super) async fn a_pool_is_linked_back(subject: Subject) {
    subject.write("file", b"f");
    let from = objects(&subject);
    let sandbox = sandbox(&subject, everything()).await;
    let pool = sandbox.place.join("o");
    let request = Assemble {
        dest: sandbox.path().join(".git"),
        pool: Some(pool.clone()),
        parts: vec![Part::Link {
            from,
            to: rel("objects"),
            except: vec!["info".to_owned()],
        }],
        cancel: Cancel::new(),
    };
    done(subject.workspaces.assemble(request).await, "assembling");
    let content = subject.content(sandbox.path());
    for gone in [".git/objects/ab", ".git", ""] {
        subject.world.remove(&sandbox.path().join(gone));
        let mut restore = back_to(&sandbox, sandbox.created.tree, everything());
        restore.hidden = vec![".git".to_owned()];
        restore.pool = Some((pool.clone(), rel(".git/objects")));
        done(subject.workspaces.restore(restore).await, "a restore");
        assert_eq!(subject.content(sandbox.path()), content, "without {gone}");
    }
}

pub(super) async fn a_failed_assembly_leaves_nothing(subject: Subject) {
    let place = done(subject.workspaces.reserve().await, "reserving");
    let dest = place.join("g");
    let request = |cancel: &Cancel| Assemble {
        dest: dest.clone(),
        pool: None,
        parts: vec![Part::Write(rel("HEAD"), b"x".to_vec())],
        cancel: cancel.clone(),
    };
    let cancelled = Cancel::new();
    cancelled.cancel();
    refused(
        subject.workspaces.assemble(request(&cancelled)).await,
        Code::Interrupted,
        Disposition::Retryable,
        "a cancelled assembly",
    );
    assert_eq!(subject.world.get(&dest), None, "nothing is left");
    let fine = Cancel::new();
    done(
        subject.workspaces.assemble(request(&fine)).await,
        "assembling",
    );
    let again = subject.workspaces.assemble(request(&fine)).await;
    assert!(again.is_err(), "what is there is never assembled over");
    let head = subject.world.get(&dest.join("HEAD"));
    assert_eq!(head, Some(file(b"x")), "and stays");
}
