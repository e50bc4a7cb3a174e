//! Private git directories: git inside sees exactly what git outside sees,
//! and nothing done inside reaches the repository (STR-1).

use std::os::unix::fs::symlink;
use std::path::Path;

use sandbar_ports::git::GitState as _;

use crate::fixture::{
    GIT, Place, Sandbox, carried, digest, discover, git, judged, make_executable, run, sandbox,
    sandbox_with, try_git, write,
};

/// Checks that git judges both alike, that the copy is sound, and that
/// making it left the repository alone.
fn faithful(place: &Place, root: &Path) -> Sandbox {
    let before = digest(root);
    let made = sandbox(place, "box", root);
    assert_eq!(digest(root), before, "the repository is untouched");
    assert_eq!(judged(&made.root), judged(root));
    git(&made.root, &["fsck", "--strict", "--no-dangling"]);
    made
}

fn busy(place: &Place) -> std::path::PathBuf {
    let root = place.repository("repo");
    for number in 0..20 {
        write(&root, &format!("many/f{number}.txt"), format!("{number}\n"));
    }
    write(&root, "run.sh", "#!/bin/sh\n");
    make_executable(&root.join("run.sh"));
    symlink("a.txt", root.join("link")).unwrap();
    write(&root, ".gitignore", "*.log\ntarget/\n");
    git(&root, &["add", "."]);
    git(&root, &["commit", "-qm", "second"]);
    git(&root, &["tag", "-am", "annotated", "v1"]);
    git(&root, &["branch", "topic"]);
    git(&root, &["gc", "-q"]);
    write(&root, "a.txt", "stashed\n");
    git(&root, &["stash", "-q"]);
    write(&root, "a.txt", "stashed again\n");
    git(&root, &["stash", "-q"]);
    write(&root, "many/f1.txt", "staged\n");
    git(&root, &["add", "many/f1.txt"]);
    write(&root, "many/f1.txt", "edited after staging\n");
    write(&root, "many/f2.txt", "unstaged\n");
    write(&root, "untracked.txt", "new\n");
    write(&root, "noise.log", "ignored\n");
    write(&root, "target/out", "ignored\n");
    std::fs::remove_file(root.join("many/f3.txt")).unwrap();
    git(&root, &["rm", "-q", "--cached", "many/f4.txt"]);
    git(
        &root,
        &["update-index", "--assume-unchanged", "many/f5.txt"],
    );
    git(&root, &["update-index", "--skip-worktree", "many/f6.txt"]);
    root
}

#[test]
fn a_busy_checkout_is_copied_exactly() {
    let place = Place::new();
    let root = busy(&place);
    write(&root, "later.txt", "intent\n");
    git(&root, &["add", "-N", "later.txt"]);
    let made = faithful(&place, &root);
    assert_eq!(made.made.notes, Vec::<String>::new());
    assert!(!made.root.join("noise.log").exists());
    assert!(!made.root.join(".git/hooks").exists());
    // The stat data is right: git need not read a clean file again.
    let clean = git(&made.root, &["ls-files", "--debug", "run.sh"]);
    let size = clean.lines().find(|line| line.contains("size:")).unwrap();
    assert!(size.contains("size: 10"), "{size}");
    let changed = git(&made.root, &["diff-files", "--name-only"]);
    let mut changed: Vec<_> = changed.lines().collect();
    changed.sort_unstable();
    assert_eq!(
        changed,
        ["later.txt", "many/f1.txt", "many/f2.txt", "many/f3.txt"]
    );
}

#[test]
fn nothing_done_inside_reaches_the_repository() {
    let place = Place::new();
    let root = busy(&place);
    let before = digest(&root);
    let made = sandbox(&place, "box", &root);
    let inside = &made.root;
    git(inside, &["config", "user.name", "Agent"]);
    git(inside, &["stash", "-q", "-u"]);
    git(inside, &["stash", "drop", "-q"]);
    git(inside, &["checkout", "-q", "topic"]);
    write(inside, "new.txt", "new\n");
    git(inside, &["add", "."]);
    git(inside, &["commit", "-qm", "inside"]);
    git(inside, &["rebase", "-q", "main"]);
    git(inside, &["branch", "-D", "-q", "main"]);
    git(inside, &["tag", "-d", "v1"]);
    git(inside, &["reflog", "expire", "--expire=now", "--all"]);
    git(inside, &["gc", "-q", "--prune=now", "--aggressive"]);
    git(inside, &["fsck", "--strict"]);
    assert_eq!(digest(&root), before);
    git(&root, &["fsck", "--strict", "--no-dangling"]);
    assert!(git(&root, &["stash", "list"]).lines().count() == 2);
}

#[test]
fn every_kind_of_head_is_copied() {
    let place = Place::new();
    let unborn = place.path("unborn");
    git(&place.path("."), &["init", "-q", "-b", "start", "unborn"]);
    write(&unborn, "staged.txt", "staged\n");
    write(&unborn, "other.txt", "other\n");
    git(&unborn, &["add", "staged.txt"]);
    let made = sandbox(&place, "box0", &unborn);
    let status = |at: &Path| git(at, &["status", "--porcelain=v2", "--branch"]);
    assert_eq!(status(&made.root), status(&unborn));
    git(&made.root, &["commit", "-qm", "first"]);

    let empty = place.path("empty");
    git(&place.path("."), &["init", "-q", "empty"]);
    let made = sandbox(&place, "box1", &empty);
    assert_eq!(status(&made.root), status(&empty));

    let root = busy(&place);
    git(&root, &["stash", "-q"]);
    git(&root, &["checkout", "-q", "--detach", "HEAD~1"]);
    faithful(&place, &root);
}

#[test]
fn a_linked_worktree_becomes_a_repository_of_its_own() {
    let place = Place::new();
    let root = busy(&place);
    git(&root, &["worktree", "add", "-q", "../linked", "topic"]);
    let linked = place.path("linked");
    write(&linked, "a.txt", "linked\n");
    git(&linked, &["add", "a.txt"]);
    write(&linked, "b.txt", "untracked\n");
    let before = (digest(&root), digest(&linked));
    let made = sandbox(&place, "box", &linked);
    assert_eq!((digest(&root), digest(&linked)), before);
    for args in [
        &["status", "--porcelain=v2", "--branch", "--show-stash"][..],
        &["for-each-ref"],
        &["stash", "list"],
        &["reflog"],
        &["ls-files", "-s"],
    ] {
        assert_eq!(git(&made.root, args), git(&linked, args), "{args:?}");
    }
    git(&made.root, &["fsck", "--strict", "--no-dangling"]);
    let list = git(&made.root, &["worktree", "list"]);
    assert_eq!(list.lines().count(), 1, "{list}");
    assert!(list.starts_with(made.root.to_str().unwrap()));
    // The branch of the other worktree is free inside.
    git(&made.root, &["checkout", "-q", "-f", "main"]);
}

#[test]
fn a_merge_and_a_rebase_go_on_inside() {
    let place = Place::new();
    let root = place.repository("repo");
    git(&root, &["checkout", "-qb", "other"]);
    write(&root, "a.txt", "one\nOTHER\nthree\n");
    git(&root, &["commit", "-qam", "other"]);
    write(&root, "more.txt", "more\n");
    git(&root, &["add", "."]);
    git(&root, &["commit", "-qm", "more"]);
    git(&root, &["checkout", "-q", "main"]);
    write(&root, "a.txt", "one\nMAIN\nthree\n");
    git(&root, &["commit", "-qam", "main"]);

    assert!(!try_git(&root, &["merge", "other"]).0);
    let made = faithful(&place, &root);
    write(&made.root, "a.txt", "one\nBOTH\nthree\n");
    git(&made.root, &["add", "a.txt"]);
    git(&made.root, &["commit", "-qm", "merged"]);
    assert_eq!(
        git(&made.root, &["log", "-1", "--format=%p"])
            .split(' ')
            .count(),
        2
    );
    git(&root, &["merge", "--abort"]);

    git(&root, &["checkout", "-q", "other"]);
    assert!(!try_git(&root, &["rebase", "main"]).0);
    let before = digest(&root);
    let made = sandbox(&place, "box2", &root);
    assert_eq!(judged(&made.root), judged(&root));
    write(&made.root, "a.txt", "one\nBOTH\nthree\n");
    git(&made.root, &["add", "a.txt"]);
    git(&made.root, &["rebase", "--continue"]);
    assert_eq!(
        git(&made.root, &["log", "--format=%s"]),
        "more\nother\nmain\nfirst\n"
    );
    assert_eq!(digest(&root), before);
}

#[test]
fn a_bisect_and_a_cherry_pick_go_on_inside() {
    let place = Place::new();
    let root = place.repository("repo");
    for number in 0..8 {
        write(&root, "n.txt", format!("{number}\n"));
        git(&root, &["add", "."]);
        git(&root, &["commit", "-qm", &format!("c{number}")]);
    }
    git(&root, &["bisect", "start", "HEAD", "HEAD~7"]);
    let made = faithful(&place, &root);
    let (ok, out, err) = try_git(&made.root, &["bisect", "good"]);
    assert!(ok && out.contains("Bisecting"), "{out}{err}");
    git(&root, &["bisect", "reset"]);
    git(&root, &["worktree", "add", "-q", "../tree", "-b", "tree"]);
    let tree = place.path("tree");
    git(&tree, &["bisect", "start", "HEAD", "HEAD~7"]);
    let made = sandbox(&place, "box1", &tree);
    let refs = |at: &Path| git(at, &["for-each-ref"]);
    assert!(refs(&tree).contains("refs/bisect/bad"));
    assert_eq!(refs(&made.root), refs(&tree));
    assert!(
        try_git(&made.root, &["bisect", "good"])
            .1
            .contains("Bisecting")
    );
    git(&root, &["worktree", "remove", "--force", "../tree"]);

    git(&root, &["checkout", "-q", "-b", "side", "HEAD~3"]);
    assert!(!try_git(&root, &["cherry-pick", "main~1", "main"]).0);
    let made = sandbox(&place, "box2", &root);
    assert_eq!(judged(&made.root), judged(&root));
    write(&made.root, "n.txt", "picked\n");
    git(&made.root, &["add", "n.txt"]);
    let (_, out, err) = try_git(&made.root, &["cherry-pick", "--continue"]);
    assert!(out.contains("c6") || err.contains("c7"), "{out}{err}");
}

#[test]
fn submodules_work_inside() {
    let place = Place::new();
    let deep = place.repository("deep");
    let library = place.repository("library");
    git(
        &library,
        &["submodule", "add", "-q", deep.to_str().unwrap(), "deep"],
    );
    git(&library, &["commit", "-qm", "deep"]);
    let root = place.repository("repo");
    git(
        &root,
        &[
            "submodule",
            "add",
            "-q",
            "--name",
            "name/with/slash",
            library.to_str().unwrap(),
            "vendor/library",
        ],
    );
    git(&root, &["commit", "-qm", "library"]);
    git(
        &root,
        &["submodule", "update", "-q", "--init", "--recursive"],
    );
    write(&root, "vendor/library/a.txt", "changed in the submodule\n");
    let made = faithful(&place, &root);
    let status = |at: &Path| git(at, &["submodule", "status", "--recursive"]);
    assert_eq!(status(&made.root), status(&root));
    let inside = made.root.join("vendor/library");
    let top = git(&inside, &["rev-parse", "--show-toplevel"]);
    assert_eq!(top.trim(), inside.to_str().unwrap());
    let before = digest(&root);
    git(&inside, &["commit", "-qam", "inside"]);
    git(&inside.join("deep"), &["checkout", "-q", "-b", "inside"]);
    git(&made.root, &["commit", "-qam", "bump"]);
    git(&made.root, &["fsck", "--strict"]);
    git(&inside, &["fsck", "--strict"]);
    assert_eq!(digest(&root), before);
}

#[test]
fn special_repositories_are_copied() {
    let place = Place::new();
    let origin = busy(&place);
    git(&origin, &["stash", "-q"]);
    let url = format!("file://{}", origin.display());
    let here = place.path(".");

    git(&here, &["clone", "-q", "--depth=1", &url, "shallow"]);
    let made = sandbox(&place, "box1", &place.path("shallow"));
    assert_eq!(judged(&made.root), judged(&place.path("shallow")));
    git(&made.root, &["fsck", "--strict"]);

    // Borrowed objects are taken along: the lender may go.
    git(
        &here,
        &[
            "clone",
            "-q",
            "--shared",
            origin.to_str().unwrap(),
            "borrower",
        ],
    );
    let made = sandbox(&place, "box2", &place.path("borrower"));
    assert_eq!(judged(&made.root), judged(&place.path("borrower")));
    assert!(!made.root.join(".git/objects/info/alternates").exists());
    std::fs::rename(&origin, place.path("gone")).unwrap();
    git(&made.root, &["fsck", "--strict", "--no-dangling"]);
    std::fs::rename(place.path("gone"), &origin).unwrap();

    git(&here, &["clone", "-q", &url, "sparse"]);
    let sparse = place.path("sparse");
    git(
        &sparse,
        &["sparse-checkout", "set", "--cone", "--sparse-index", "src"],
    );
    assert!(!sparse.join("many").exists());
    let made = sandbox(&place, "box3", &sparse);
    let all = &["ls-files", "-t", "--cached"][..];
    assert_eq!(git(&made.root, all), git(&sparse, all));
    let status = &["status", "--porcelain=v2", "--branch"][..];
    assert_eq!(git(&made.root, status), git(&sparse, status));
    assert!(!made.root.join("many").exists());
    git(&made.root, &["sparse-checkout", "add", "many"]);
    assert!(made.root.join("many/f7.txt").exists());
    git(&made.root, &["fsck", "--strict"]);

    git(&here, &["clone", "-q", &url, "split"]);
    let split = place.path("split");
    git(&split, &["update-index", "--split-index"]);
    write(&split, "split.txt", "in the upper half\n");
    git(&split, &["add", "split.txt"]);
    let made = sandbox(&place, "box4", &split);
    assert_eq!(judged(&made.root), judged(&split));

    git(&here, &["clone", "-q", &url, "four"]);
    let four = place.path("four");
    git(&four, &["update-index", "--index-version", "4"]);
    let made = sandbox(&place, "box5", &four);
    assert_eq!(judged(&made.root), judged(&four));

    git(&here, &["clone", "-q", &url, "auto"]);
    let auto = place.path("auto");
    git(&auto, &["config", "core.autocrlf", "true"]);
    write(&auto, ".gitattributes", "*.sh text eol=lf\n");
    git(&auto, &["rm", "-q", "-r", "--cached", "."]);
    git(&auto, &["reset", "-q", "--hard"]);
    let made = sandbox(&place, "box6", &auto);
    assert_eq!(judged(&made.root), judged(&auto));
}

#[test]
fn the_configuration_is_kept_but_for_what_reaches_out() {
    let place = Place::new();
    let root = place.repository("repo");
    let included = place.path("included");
    std::fs::write(
        &included,
        "[alias]\n\tls = log --oneline\n[core]\n\thooksPath = /evil\n",
    )
    .unwrap();
    let config = [
        ("core.hooksPath", "/evil"),
        ("core.fsmonitor", "/evil"),
        ("core.sshCommand", "/evil"),
        ("commit.gpgSign", "true"),
        ("gpg.program", "/evil"),
        ("credential.helper", "/evil"),
        ("include.path", included.to_str().unwrap()),
        ("user.name", "U \"quoted\" \\ Ser"),
        ("remote.origin.url", "../upstream"),
        ("remote.origin.pushurl", "elsewhere"),
        ("remote.origin.fetch", "+refs/heads/*:refs/remotes/origin/*"),
        ("branch.main.remote", "origin"),
        ("filter.lfs.clean", "git-lfs clean -- %f"),
        ("section.Sub.Section.key", "a\tb\nc"),
    ];
    for (key, value) in config {
        git(&root, &["config", key, value]);
    }
    git(&root, &["config", "--add", "remote.origin.fetch", "second"]);
    std::fs::OpenOptions::new()
        .append(true)
        .open(root.join(".git/config"))
        .and_then(|mut file| std::io::Write::write_all(&mut file, b"[flags]\n\timplicit\n"))
        .unwrap();
    let made = sandbox(&place, "box", &root);
    let get = |key: &str| try_git(&made.root, &["config", "--get-all", key]).1;
    for (key, want) in [
        ("core.hooksPath", "/dev/null\n"),
        ("core.fsmonitor", "false\n"),
        ("core.sshCommand", ""),
        ("core.bare", "false\n"),
        ("commit.gpgSign", "false\n"),
        ("gpg.program", ""),
        ("credential.helper", ""),
        ("include.path", ""),
        ("alias.ls", "log --oneline\n"),
        ("user.name", "U \"quoted\" \\ Ser\n"),
        (
            "remote.origin.fetch",
            "+refs/heads/*:refs/remotes/origin/*\nsecond\n",
        ),
        ("branch.main.remote", "origin\n"),
        ("filter.lfs.clean", "git-lfs clean -- %f\n"),
        ("section.Sub.Section.key", "a\tb\nc\n"),
        ("gc.auto", "0\n"),
    ] {
        assert_eq!(get(key), want, "{key}");
    }
    assert_eq!(
        get("remote.origin.url").trim(),
        root.join("../upstream").to_str().unwrap()
    );
    assert_eq!(
        git(&made.root, &["config", "--type=bool", "flags.implicit"]),
        "true\n"
    );
    assert!(!try_git(&made.root, &["config", "core.worktree"]).0);
}

#[test]
fn pushing_goes_nowhere_unless_allowed() {
    let place = Place::new();
    let root = place.repository("repo");
    git(
        &place.path("."),
        &["clone", "-q", "--bare", "repo", "up.git"],
    );
    let up = place.path("up.git");
    git(&root, &["remote", "add", "origin", up.to_str().unwrap()]);
    git(&root, &["fetch", "-q"]);
    let made = sandbox(&place, "box", &root);
    git(&made.root, &["checkout", "-qb", "pushed"]);
    for target in ["origin", up.to_str().unwrap()] {
        let (pushed, _, err) = try_git(&made.root, &["push", target, "pushed"]);
        assert!(!pushed && err.contains("sandbar-push-is-disabled"), "{err}");
    }
    git(&made.root, &["fetch", "-q", "origin"]);
    assert_eq!(git(&up, &["for-each-ref", "refs/heads/pushed"]), "");
    let made = sandbox_with(&place, "box2", &root, true, &[]);
    git(
        &made.root,
        &["push", "-q", "origin", "HEAD:refs/heads/pushed"],
    );
    assert_ne!(git(&up, &["for-each-ref", "refs/heads/pushed"]), "");
}

#[test]
fn the_fingerprint_follows_head_refs_and_index() {
    let place = Place::new();
    let root = place.repository("repo");
    let read = || run(GIT.fingerprint(discover(&root))).unwrap();
    let mut seen = vec![read()];
    assert_eq!(read(), seen[0]);
    for args in [
        &["branch", "b"][..],
        &["pack-refs", "--all"],
        &["tag", "t"],
        &["checkout", "-q", "b"],
        &["rm", "-q", "--cached", "a.txt"],
    ] {
        git(&root, args);
        let now = read();
        if args[0] == "pack-refs" {
            assert_eq!(now, seen[seen.len() - 1], "packing changes no ref");
        } else {
            assert!(!seen.contains(&now), "{args:?}");
            seen.push(now);
        }
    }
}

#[test]
fn two_indexes_are_the_same_by_their_entries() {
    let place = Place::new();
    let root = busy(&place);
    let made = sandbox(&place, "box", &root);
    let read = |at: &Path| std::fs::read(at.join(".git/index")).unwrap();
    let same = |a: Vec<u8>, b: Vec<u8>| run(GIT.same_index(a, b)).unwrap();
    assert_ne!(read(&root), read(&made.root));
    assert!(same(read(&root), read(&made.root)));
    git(
        &made.root,
        &["update-index", "--no-skip-worktree", "many/f6.txt"],
    );
    assert!(!same(read(&root), read(&made.root)));
    assert!(run(GIT.same_index(read(&root), b"DIRC".to_vec())).is_err());
}

#[test]
fn the_state_leaves_out_what_the_pool_keeps() {
    let place = Place::new();
    let root = busy(&place);
    let made = sandbox(&place, "box", &root);
    let rules = run(GIT.state_rules(made.pool.clone())).unwrap();
    let list = || carried(&made.root.join(".git"), &*rules);
    let first = list();
    let objects: Vec<_> = first
        .iter()
        .filter(|path| path.starts_with("objects/"))
        .collect();
    assert_eq!(objects, ["objects/info/commit-graph"]);
    assert!(first.contains(&"HEAD".to_owned()) && first.contains(&"logs/HEAD".to_owned()));
    write(&made.root, "new.txt", "new\n");
    git(&made.root, &["add", "new.txt"]);
    git(&made.root, &["update-ref", "refs/sandbar/x/1", "HEAD"]);
    write(&made.root, ".git/logs/refs/sandbar/x/1", "hidden\n");
    write(&made.root, ".git/index.lock", "");
    write(&made.root, ".git/objects/aa/tmp_obj_1", "");
    let blob = git(&made.root, &["hash-object", "new.txt"]);
    let object = format!("objects/{}/{}", &blob[..2], blob[2..].trim());
    let added: Vec<_> = list()
        .into_iter()
        .filter(|path| !first.contains(path))
        .collect();
    assert_eq!(added, [object]);
}

#[test]
fn unusual_git_directories_are_copied() {
    let place = Place::new();
    let here = place.path(".");
    let library = place.repository("library");
    let root = place.repository("repo");
    git(
        &root,
        &[
            "submodule",
            "add",
            "-q",
            library.to_str().unwrap(),
            "library",
        ],
    );
    let submodule = root.join("library");
    write(&submodule, "a.txt", "in the submodule\n");
    let made = sandbox(&place, "box1", &submodule);
    assert_eq!(judged(&made.root), judged(&submodule));
    let top = git(&made.root, &["rev-parse", "--show-toplevel"]);
    assert_eq!(top.trim(), made.root.to_str().unwrap());

    git(
        &here,
        &[
            "clone",
            "-q",
            "--separate-git-dir=apart.git",
            "library",
            "apart",
        ],
    );
    let apart = place.path("apart");
    let made = sandbox(&place, "box2", &apart);
    assert_eq!(judged(&made.root), judged(&apart));

    git(&here, &["clone", "-q", "library", "linked"]);
    let linked = place.path("linked");
    std::fs::rename(linked.join(".git"), place.path("moved")).unwrap();
    symlink("../moved", linked.join(".git")).unwrap();
    let made = sandbox(&place, "box3", &linked);
    assert_eq!(judged(&made.root), judged(&linked));

    git(&here, &["clone", "-q", "--bare", "library", "bare.git"]);
    git(
        &place.path("bare.git"),
        &["worktree", "add", "-q", "../of-bare", "main"],
    );
    let of_bare = place.path("of-bare");
    write(&of_bare, "a.txt", "changed\n");
    let made = sandbox(&place, "box5", &of_bare);
    for args in [
        &["status", "--porcelain=v2"][..],
        &["for-each-ref"],
        &["ls-files", "-s"],
    ] {
        assert_eq!(git(&made.root, args), git(&of_bare, args), "{args:?}");
    }
    git(&made.root, &["fsck", "--strict", "--no-dangling"]);

    // Settings of one working tree alone come along.
    git(&here, &["clone", "-q", "library", "main"]);
    let main = place.path("main");
    git(&main, &["config", "extensions.worktreeConfig", "true"]);
    git(&main, &["worktree", "add", "-q", "../tree"]);
    let tree = place.path("tree");
    git(&tree, &["config", "--worktree", "user.name", "Tree"]);
    git(&tree, &["sparse-checkout", "set", "--cone", "src"]);
    let made = sandbox(&place, "box4", &tree);
    assert_eq!(git(&made.root, &["config", "user.name"]), "Tree\n");
    let status = |at: &Path| git(at, &["status", "--porcelain=v2"]);
    assert_eq!(status(&made.root), status(&tree));
    assert_eq!(
        git(&made.root, &["ls-files", "-t"]),
        git(&tree, &["ls-files", "-t"])
    );
}

#[test]
fn names_that_need_quoting_are_kept() {
    let place = Place::new();
    let root = place.repository("repo");
    for name in [
        "with space",
        "tab\there",
        "quote\"d",
        "back\\slash",
        "new\nline",
        "\u{fc}ber",
        "-dash",
        "a:b",
    ] {
        write(&root, name, name);
        write(&root, &format!("dir {name}/{name}"), name);
    }
    git(&root, &["add", "."]);
    write(&root, "with space", "changed\n");
    faithful(&place, &root);
}
