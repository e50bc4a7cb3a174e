//! One way to run an asynchronous test body.

use std::future::Future;

/// Runs `body` on a runtime of two worker threads with every driver enabled.
pub fn run<T>(body: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime can be built")
        .block_on(body)
}
