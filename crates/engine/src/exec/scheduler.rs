//! Runs tasks on the workers of a statement, which complete the shared part of a sink together.

use crate::context::QueryContext;
use crate::context::workers::FirstError;
use crate::exec::operator::Tasks;
use crate::sync::{AtomicUsize, Ordering, within};
use entasis_vector::Result;
use entasis_vector::statement::Statement;
use std::sync::Arc;

/// Runs [`Tasks`] on the workers of a statement, and checks for its cancellation before each task.
pub struct PoolTasks<'a>(pub &'a QueryContext);

impl Tasks for PoolTasks<'_> {
    fn run(&self, count: usize, task: &(dyn Fn(usize) -> Result<()> + Sync)) -> Result<()> {
        let next = AtomicUsize::new(0);
        let outcome = FirstError::default();
        let context = self.0;
        let statement: Arc<dyn Statement> = Arc::new(context.clone());
        let work = || -> Result<()> {
            while !outcome.is_stopped() {
                context.check()?;
                let index = next.fetch_add(1, Ordering::Relaxed);
                if index >= count {
                    break;
                }
                task(index)?;
            }
            Ok(())
        };
        context.pool.run(context.settings.threads.clamp(1, count.max(1)), &|_| {
            outcome.guard(|| within(statement.clone(), work));
        });
        outcome.into_result()
    }

    fn check(&self) -> Result<()> {
        self.0.check()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::WorkerPool;
    use crate::settings::Settings;
    use crate::sync::thread;

    fn context(threads: usize, pool: &WorkerPool) -> QueryContext {
        let settings = Settings { threads, ..Default::default() };
        QueryContext { settings: Arc::new(settings), pool: pool.clone(), ..QueryContext::default() }
    }

    fn sum(tasks: &dyn Tasks, count: usize) -> usize {
        let sum = AtomicUsize::new(0);
        tasks
            .run(count, &|i| {
                sum.fetch_add(i + 1, Ordering::Relaxed);
                Ok(())
            })
            .unwrap();
        sum.into_inner()
    }

    struct Scoped(usize);

    impl Tasks for Scoped {
        fn run(&self, count: usize, task: &(dyn Fn(usize) -> Result<()> + Sync)) -> Result<()> {
            let next = AtomicUsize::new(0);
            thread::scope(|scope| {
                for _ in 0..self.0 {
                    scope.spawn(|| {
                        while next.load(Ordering::Relaxed) < count {
                            let index = next.fetch_add(1, Ordering::Relaxed);
                            if index < count {
                                task(index).unwrap();
                            }
                        }
                    });
                }
            });
            Ok(())
        }
        fn check(&self) -> Result<()> {
            Ok(())
        }
    }

    #[test]
    fn every_task_runs_once() {
        let pool = WorkerPool::default();
        for workers in 1..5 {
            for count in [0, 1, 2, 1000] {
                let context = context(workers, &pool);
                assert_eq!(sum(&PoolTasks(&context), count), sum(&Scoped(workers), count));
            }
        }
    }

    #[test]
    fn statements_share_the_helpers() {
        let pool = WorkerPool::default();
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let context = context(3, &pool);
                    for _ in 0..50 {
                        assert_eq!(sum(&PoolTasks(&context), 100), 5050);
                    }
                });
            }
        });
    }

    #[test]
    fn a_panic_is_an_error_and_the_pool_lives() {
        let pool = WorkerPool::default();
        let context = context(2, &pool);
        let tasks = PoolTasks(&context);
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(|_| {}));
        let error = tasks.run(10, &|i| if i == 7 { panic!("seven") } else { Ok(()) }).unwrap_err();
        std::panic::set_hook(hook);
        assert!(error.message().contains("seven"), "{error}");
        assert_eq!(sum(&tasks, 10), 55);
    }
}
