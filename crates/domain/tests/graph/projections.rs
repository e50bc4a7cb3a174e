//! Access projection: every built-in handler, with and without a sandbox.

use sandbar_domain::graph::project::{ArgumentRefused, rewrite_argument};
use sandbar_domain::graph::{AccessProjection, LiveSandbox, Protocol, Rules};

use crate::boundaries::EVERYTHING;
use crate::ground::Ground;

fn live(ground: &Ground, boundary: &str, real: &str, root: &str) -> LiveSandbox {
    LiveSandbox {
        boundary: ground.id(boundary),
        real: real.to_owned(),
        root: root.to_owned(),
        in_place: false,
    }
}

fn project(
    ground: &Ground,
    from: &str,
    to: &str,
    live: &[LiveSandbox],
) -> Option<AccessProjection> {
    let (from, to) = (ground.node(from), ground.node(to));
    ground.graph.project(from, to, live, &Rules)
}

/// `path protocol [in within] rw richness [crosses] boundary`
fn line(ground: &Ground, projection: &AccessProjection) -> String {
    let AccessProjection {
        access_path,
        protocol,
        within,
        crosses_sandbox,
        target_boundary,
        readable,
        writable,
        read_richness,
        generation,
    } = projection;
    assert_eq!(*generation, ground.graph.generation());
    let within = within
        .as_ref()
        .map_or(String::new(), |w| format!(" in {w}"));
    let read = if *readable { "r" } else { "-" };
    let write = if *writable { "w" } else { "-" };
    let crosses = if *crosses_sandbox { " crosses" } else { "" };
    let boundary = target_boundary.map_or("none", |id| ground.name(id));
    let protocol = protocol.word();
    format!("{access_path} {protocol}{within} {read}{write} {read_richness}{crosses} {boundary}")
}

fn table(ground: &Ground, live: &[LiveSandbox], rows: &[(&str, &str, &str)]) {
    for (from, to, expected) in rows {
        let found = project(ground, from, to, live);
        let found = found.map_or("not projectable".to_owned(), |found| line(ground, &found));
        assert_eq!(found, *expected, "{from} → {to}");
    }
}

// conformance: PRJ-1, PRJ-3
#[test]
fn every_handler_projects_what_it_reaches() {
    let ground = Ground::new(EVERYTHING);
    table(
        &ground,
        &[],
        &[
            // Bound to something on a file system.
            ("repo", "repo", "/home/repo filesystem rw 1 repo"),
            (
                "repo",
                "lib.rs",
                "/home/repo/src/lib.rs filesystem rw 1 repo",
            ),
            (
                "src",
                "lib.rs",
                "/home/repo/src/lib.rs filesystem rw 1 repo",
            ),
            (
                "lib.rs",
                "lib.rs",
                "/home/repo/src/lib.rs filesystem rw 1 repo",
            ),
            (
                "repo",
                "dep.c",
                "/home/repo/dep/dep.c filesystem rw 1 crosses dep",
            ),
            ("home", "todo", "/home/notes/todo filesystem rw 1 home"),
            (
                "home",
                "v.c",
                "/home/repo/vendor/v.c filesystem rw 1 crosses vendor",
            ),
            ("disk", "big", "/mnt/big filesystem rw 1 disk"),
            ("rustc", "rustc", "/usr/bin/rustc filesystem r- 1 none"),
            (
                "repo",
                "main",
                "refs/heads/main git-object in /home/repo rw 1 repo",
            ),
            // Bound to a repository.
            (
                "dotgit",
                "main",
                "refs/heads/main git-object in /home/repo/.git rw 1 repo",
            ),
            (
                "dotgit",
                "entry",
                "4b825dc:entry git-object in /home/repo/.git r- 1 repo",
            ),
            (
                "dotgit",
                "top",
                "4b825dc git-object in /home/repo/.git r- 1 repo",
            ),
            // Bound to the container runtime.
            ("docker", "alpine", "alpine docker-api r- 0 none"),
            ("docker", "web", "c0ffee docker-api rw 1 crosses web"),
            ("docker", "vol", "vol-1 docker-api rw 1 crosses vol"),
            (
                "docker",
                "page.html",
                "c0ffee:/app/page.html docker-api rw 1 crosses web",
            ),
            (
                "docker",
                "0001",
                "vol-1:/pg/0001 docker-api rw 1 crosses vol",
            ),
            // Bound to a container, a mount, a volume, or a directory of one.
            (
                "web",
                "page.html",
                "/app/page.html container-exec in c0ffee rw 1 web",
            ),
            (
                "web",
                "passwd",
                "/etc/passwd container-exec in c0ffee rw 1 web",
            ),
            (
                "web",
                "d.csv",
                "/app/data/d.csv container-exec in c0ffee r- 1 web",
            ),
            (
                "app",
                "page.html",
                "/app/page.html container-exec in c0ffee rw 1 web",
            ),
            (
                "data",
                "d.csv",
                "/app/data/d.csv container-exec in c0ffee r- 1 web",
            ),
            (
                "etc",
                "passwd",
                "/etc/passwd container-exec in c0ffee rw 1 web",
            ),
            (
                "passwd",
                "passwd",
                "/etc/passwd container-exec in c0ffee rw 1 web",
            ),
            ("vol", "0001", "/pg/0001 container-exec in vol-1 rw 1 vol"),
            ("pg", "0001", "/pg/0001 container-exec in vol-1 rw 1 vol"),
            // Bound to a language server.
            ("pyright", "ws", "file:///home/repo lsp r- 10 none"),
            (
                "ws",
                "doc",
                "file:///home/repo/src/lib.rs lsp-textdocument rw 10 crosses none",
            ),
            (
                "doc",
                "doc",
                "file:///home/repo/src/lib.rs lsp-textdocument rw 10 crosses none",
            ),
            // Bound to a database.
            ("db", "orders", "\"public\".\"orders\" sql in shop rw 1 db"),
            (
                "public",
                "orders",
                "\"public\".\"orders\" sql in shop rw 1 db",
            ),
            // No way leads there.
            ("src", "repo", "not projectable"),
            ("repo", "page.html", "not projectable"),
        ],
    );
}

// conformance: PRJ-2 partial: the rule; that calls go through it is shown with tools
#[test]
fn with_a_live_sandbox_every_path_leads_into_it() {
    let ground = Ground::new(EVERYTHING);
    let sandboxes = [
        live(&ground, "repo", "/home/repo", "/data/s/a/r"),
        live(&ground, "web", "c0ffee", "beef"),
        live(&ground, "db", "shop", "shop_copy"),
    ];
    table(
        &ground,
        &sandboxes,
        &[
            (
                "repo",
                "lib.rs",
                "/data/s/a/r/src/lib.rs filesystem rw 1 repo",
            ),
            ("repo", "root", "/data/s/a/r filesystem rw 1 repo"),
            // A nested boundary sits at its path inside the sandbox around it.
            (
                "repo",
                "dep.c",
                "/data/s/a/r/dep/dep.c filesystem rw 1 crosses dep",
            ),
            (
                "home",
                "lib.rs",
                "/data/s/a/r/src/lib.rs filesystem rw 1 crosses repo",
            ),
            // No sandbox of this plan: the real path.
            ("home", "todo", "/home/notes/todo filesystem rw 1 home"),
            (
                "repo",
                "main",
                "refs/heads/main git-object in /data/s/a/r rw 1 repo",
            ),
            (
                "web",
                "page.html",
                "/app/page.html container-exec in beef rw 1 web",
            ),
            ("docker", "web", "beef docker-api rw 1 crosses web"),
            (
                "ws",
                "doc",
                "file:///data/s/a/r/src/lib.rs lsp-textdocument rw 10 crosses none",
            ),
            ("pyright", "ws", "file:///data/s/a/r lsp r- 10 none"),
            (
                "db",
                "orders",
                "\"public\".\"orders\" sql in shop_copy rw 1 db",
            ),
        ],
    );
    let mut nested = sandboxes.to_vec();
    nested.push(live(&ground, "dep", "/home/repo/dep", "/data/s/b/r"));
    table(
        &ground,
        &nested,
        &[(
            "repo",
            "dep.c",
            "/data/s/b/r/dep.c filesystem rw 1 crosses dep",
        )],
    );
    // A caller in the in-place view sees the sandbox at the real path.
    let mut in_place = sandboxes.to_vec();
    in_place[0].in_place = true;
    table(
        &ground,
        &in_place,
        &[
            (
                "repo",
                "lib.rs",
                "/home/repo/src/lib.rs filesystem rw 1 repo",
            ),
            (
                "repo",
                "main",
                "refs/heads/main git-object in /home/repo rw 1 repo",
            ),
            (
                "ws",
                "doc",
                "file:///home/repo/src/lib.rs lsp-textdocument rw 10 crosses none",
            ),
        ],
    );
    // A place that is not of the sandbox's real root is refused, not guessed.
    let moved = [live(&ground, "repo", "/elsewhere", "/data/s/a/r")];
    table(&ground, &moved, &[("repo", "lib.rs", "not projectable")]);
}

// conformance: PRJ-3
#[test]
fn the_longest_mount_wins_and_covers_what_is_beneath() {
    let ground = Ground::new(
        "
container-instance c @c1
  container-mount whole @/srv
    fs-directory logs
      fs-file a.log
    fs-file s
  container-mount inner @/srv/logs read_only=true
    fs-file b.log
  container-mount odd @/srv2
    fs-file o
  fs-directory hidden @/srv/logs/x
    fs-file h
  fs-directory seen @/opt
    fs-file p
",
    );
    table(
        &ground,
        &[],
        &[
            ("c", "s", "/srv/s container-exec in c1 rw 1 c"),
            ("c", "b.log", "/srv/logs/b.log container-exec in c1 r- 1 c"),
            ("c", "a.log", "not projectable"),
            ("whole", "a.log", "not projectable"),
            ("c", "h", "not projectable"),
            ("c", "o", "/srv2/o container-exec in c1 rw 1 c"),
            ("c", "p", "/opt/p container-exec in c1 rw 1 c"),
            ("c", "c", "/ container-exec in c1 rw 1 c"),
        ],
    );
}

#[test]
fn document_uris_are_compared_decoded_and_at_borders() {
    let ground = Ground::new(
        "
git-checkout r @/home/my%repo
lsp-workspace w
  lsp-document a document_uri=file:///home/my%25repo/a%20b.rs
  lsp-document b document_uri=file:///home/my%25repository/b.rs
  lsp-document c document_uri=untitled:1
  lsp-document d
",
    );
    let sandboxes = [live(&ground, "r", "/home/my%repo", "/s/ü")];
    table(
        &ground,
        &sandboxes,
        &[
            (
                "w",
                "a",
                "file:///s/%C3%BC/a%20b.rs lsp-textdocument rw 10 crosses none",
            ),
            (
                "w",
                "b",
                "file:///home/my%25repository/b.rs lsp-textdocument rw 10 crosses none",
            ),
            ("w", "c", "untitled:1 lsp-textdocument rw 10 crosses none"),
            ("w", "d", "not projectable"),
        ],
    );
}

// conformance: PRJ-2 partial: the rule; that calls go through it is shown with tools
#[test]
fn path_arguments_are_led_into_the_sandbox_or_refused() {
    let ground = Ground::new(EVERYTHING);
    let mut sandboxes = vec![
        live(&ground, "home", "/home", "/data/s/h/r"),
        live(&ground, "repo", "/home/repo", "/data/s/a/r"),
    ];
    let table = [
        ("/home/repo/src/lib.rs", Ok("/data/s/a/r/src/lib.rs")),
        ("/home/repo", Ok("/data/s/a/r")),
        ("/home/repo/", Ok("/data/s/a/r")),
        ("/home/repository/x", Ok("/data/s/h/r/repository/x")),
        ("/data/s/a/r/src", Ok("/data/s/a/r/src")),
        ("/etc/passwd", Err(ArgumentRefused::Outside)),
        ("/homes", Err(ArgumentRefused::Outside)),
        ("/", Err(ArgumentRefused::Outside)),
        ("src/lib.rs", Err(ArgumentRefused::Relative)),
        ("", Err(ArgumentRefused::Relative)),
        (
            "/home/repo/../../etc/passwd",
            Err(ArgumentRefused::Component),
        ),
        ("/home/./repo", Err(ArgumentRefused::Component)),
        ("/home//repo", Err(ArgumentRefused::Component)),
        ("/data/s/a/r/../../x", Err(ArgumentRefused::Component)),
    ];
    for (path, expected) in table {
        let expected = expected.map(str::to_owned);
        assert_eq!(rewrite_argument(path, &sandboxes), expected, "{path}");
    }
    sandboxes[1].in_place = true;
    let path = "/home/repo/src";
    assert_eq!(rewrite_argument(path, &sandboxes).as_deref(), Ok(path));
}

#[test]
fn every_protocol_has_a_rule() {
    use sandbar_domain::graph::Handlers as _;
    for protocol in Protocol::ALL {
        assert!(Rules.handler(protocol).is_some(), "{}", protocol.word());
    }
}
