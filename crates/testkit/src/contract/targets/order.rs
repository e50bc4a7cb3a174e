//! The order of calls.

use sandbar_domain::{Code, Disposition, Kind};

use super::{every_kind, executed, job, replace, staged, store, whole};
use crate::contract::files::{Subject, entry, file};
use crate::contract::{done, refused};

pub(super) async fn calls_out_of_order_are_refused(subject: Subject) {
    let job = every_kind(&subject).await;
    let (code, how) = (Code::IllegalState, Disposition::Conflict);
    let before = subject.snapshot(&subject.world.root());
    refused(
        subject.targets.execute(job.clone()).await,
        code,
        how,
        "executing what was never staged",
    );
    staged(&subject, &job).await;
    refused(
        subject.targets.settle(job.clone()).await,
        code,
        how,
        "settling what was never executed",
    );
    assert_eq!(subject.snapshot(&subject.world.root()), before);
    executed(&subject, &job).await;
    let after = subject.snapshot(&subject.world.root());
    refused(
        subject.targets.stage(job.clone()).await,
        code,
        how,
        "staging over an executed job",
    );
    done(subject.targets.settle(job.clone()).await, "settling");
    refused(
        subject.targets.stage(job.clone()).await,
        code,
        how,
        "staging over a settled job",
    );
    assert_eq!(subject.snapshot(&subject.world.root()), after);
}

pub(super) async fn a_second_stage_begins_anew(subject: Subject) {
    subject.write("file", b"old");
    store(&subject, b"first").await;
    store(&subject, b"second").await;
    let op = |bytes: &[u8]| vec![replace("file", file(b"old"), entry(Kind::File, bytes))];
    let first = job(&subject, "job", op(b"first")).await;
    staged(&subject, &first).await;
    staged(&subject, &first).await;
    let mut second = first.clone();
    second.ops = op(b"second");
    staged(&subject, &second).await;
    whole(&executed(&subject, &second).await, &second);
    assert_eq!(
        subject.world.get(&subject.at("file")),
        Some(file(b"second"))
    );
}
