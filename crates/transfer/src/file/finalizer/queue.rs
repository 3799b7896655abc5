//! Which of the tasks that sessions have for the finalizer comes next: files that are complete before
//! look-ups, and one of each session in turn.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Tasks of several sessions, in a fair order.
#[derive(Debug)]
pub(super) struct Queue<T> {
    waiting: Mutex<Waiting<T>>,
    changed: Condvar,
}

#[derive(Debug)]
struct Waiting<T> {
    /// For each session that has any, its complete files.
    keeps: VecDeque<(u64, VecDeque<T>)>,
    /// At most one look-up of each session.
    finds: VecDeque<(u64, T)>,
    /// A look-up is running: it may take as long as a large file takes to read, so there is one at a
    /// time, and other threads stay free for complete files.
    finding: bool,
    closed: bool,
    sessions: u64,
}

/// A task, and whether it is a look-up, whose end must be reported.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next<T> {
    Keep(T),
    Find(T),
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        let (keeps, finds) = (VecDeque::new(), VecDeque::new());
        let waiting = Waiting { keeps, finds, finding: false, closed: false, sessions: 0 };
        Self { waiting: Mutex::new(waiting), changed: Condvar::new() }
    }
}

impl<T> Queue<T> {
    /// A number for a new session.
    pub(super) fn session(&self) -> u64 {
        let mut waiting = self.lock();
        waiting.sessions += 1;
        waiting.sessions
    }

    /// Adds a complete file of a session.
    pub(super) fn keep(&self, session: u64, task: T) {
        let mut waiting = self.lock();
        match waiting.keeps.iter_mut().find(|(its, _)| *its == session) {
            Some((_, tasks)) => tasks.push_back(task),
            None => waiting.keeps.push_back((session, VecDeque::from([task]))),
        }
        self.changed.notify_one();
    }

    /// Adds a look-up of a session, in place of the one that waits, if one does.
    pub(super) fn find(&self, session: u64, task: T) {
        let mut waiting = self.lock();
        match waiting.finds.iter_mut().find(|(its, _)| *its == session) {
            Some((_, before)) => *before = task,
            None => waiting.finds.push_back((session, task)),
        }
        self.changed.notify_one();
    }

    /// Waits for a task; `None` if all are done and no more will come.
    pub(super) fn next(&self) -> Option<Next<T>> {
        let mut waiting = self.lock();
        loop {
            if let Some(next) = waiting.take() {
                return Some(next);
            }
            if waiting.closed {
                return None;
            }
            waiting = self.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The next task, if there is one.
    pub(super) fn try_next(&self) -> Option<Next<T>> {
        self.lock().take()
    }

    /// The running look-up has ended.
    pub(super) fn found(&self) {
        self.lock().finding = false;
        self.changed.notify_one();
    }

    /// No more tasks will come; look-ups that wait are dropped.
    pub(super) fn close(&self) {
        let mut waiting = self.lock();
        waiting.closed = true;
        waiting.finds.clear();
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Waiting<T>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Waiting<T> {
    fn take(&mut self) -> Option<Next<T>> {
        if let Some((session, mut tasks)) = self.keeps.pop_front() {
            let task = tasks.pop_front();
            if !tasks.is_empty() {
                self.keeps.push_back((session, tasks));
            }
            return task.map(Next::Keep);
        }
        if self.finding {
            return None;
        }
        let (_, task) = self.finds.pop_front()?;
        self.finding = true;
        Some(Next::Find(task))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complete_files_come_first_and_sessions_in_turn() {
        let queue = Queue::default();
        let [one, two] = [queue.session(), queue.session()];
        queue.find(one, "look-up");
        queue.find(two, "another");
        for task in ["a1", "a2", "a3"] {
            queue.keep(one, task);
        }
        queue.keep(two, "b1");
        let next = |_| queue.next().expect("a task");
        let order = [0; 5].map(next);
        let keep = |task| Next::Keep(task);
        assert_eq!(order[..4], [keep("a1"), keep("b1"), keep("a2"), keep("a3")]);
        assert_eq!(order[4], Next::Find("look-up"));
        queue.found();
        assert_eq!(queue.next(), Some(Next::Find("another")));
        queue.close();
        assert_eq!(queue.next(), None);
    }
}
