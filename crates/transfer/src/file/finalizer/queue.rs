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
    /// At most one look-up of each session, and for each session that has any, its questions.
    finds: VecDeque<(u64, T)>,
    asks: VecDeque<(u64, VecDeque<T>)>,
    /// How many of these are running. Each may take as long as a large file takes to read, so there are few, and
    /// other threads stay free for complete files.
    finding: usize,
    /// Whether a question was the last to begin.
    asked: bool,
    closed: bool,
    sessions: u64,
}

/// A task, and whether it is a look-up or a question, whose end must be reported.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next<T> {
    Keep(T),
    Find(T),
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        let (keeps, finds, asks) = (VecDeque::new(), VecDeque::new(), VecDeque::new());
        let (finding, asked, closed, sessions) = (0, false, false, 0);
        let waiting = Waiting { keeps, finds, asks, finding, asked, closed, sessions };
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
        push(&mut self.lock().keeps, session, task);
        self.changed.notify_one();
    }

    /// Adds a question of a session.
    pub(super) fn ask(&self, session: u64, task: T) {
        push(&mut self.lock().asks, session, task);
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

    /// Drops the look-up and the questions of a session that is over: nothing counts their memory any more.
    pub(super) fn forget(&self, session: u64) {
        let mut waiting = self.lock();
        let find = remove(&mut waiting.finds, session);
        let asks = remove(&mut waiting.asks, session);
        drop(waiting);
        drop((find, asks));
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

    /// A look-up or a question that was running has ended.
    pub(super) fn found(&self) {
        self.lock().finding -= 1;
        self.changed.notify_one();
    }

    /// No more tasks will come; look-ups that wait are dropped.
    pub(super) fn close(&self) {
        let mut waiting = self.lock();
        waiting.closed = true;
        waiting.finds.clear();
        waiting.asks.clear();
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Waiting<T>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Waiting<T> {
    fn take(&mut self) -> Option<Next<T>> {
        if let Some(task) = pop(&mut self.keeps) {
            return Some(Next::Keep(task));
        }
        if self.finding >= MOST_FINDING {
            return None;
        }
        let asks = self.finds.is_empty() || !self.asked && !self.asks.is_empty();
        let task = match asks {
            true => pop(&mut self.asks),
            false => self.finds.pop_front().map(|(_, task)| task),
        }?;
        self.asked = asks;
        self.finding += 1;
        Some(Next::Find(task))
    }
}

fn push<T>(sessions: &mut VecDeque<(u64, VecDeque<T>)>, session: u64, task: T) {
    match sessions.iter_mut().find(|(its, _)| *its == session) {
        Some((_, tasks)) => tasks.push_back(task),
        None => sessions.push_back((session, VecDeque::from([task]))),
    }
}

fn remove<T>(sessions: &mut VecDeque<(u64, T)>, session: u64) -> Option<T> {
    let at = sessions.iter().position(|(its, _)| *its == session)?;
    sessions.remove(at).map(|(_, its)| its)
}

/// Takes a task of the session whose turn it is.
fn pop<T>(sessions: &mut VecDeque<(u64, VecDeque<T>)>) -> Option<T> {
    let (session, mut tasks) = sessions.pop_front()?;
    let task = tasks.pop_front();
    if !tasks.is_empty() {
        sessions.push_back((session, tasks));
    }
    task
}

/// Half of the finalizer's threads.
const MOST_FINDING: usize = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_and_look_ups_take_turns_and_leave_threads_free() {
        let queue = Queue::default();
        let [one, two] = [queue.session(), queue.session()];
        for task in ["a1", "a2"] {
            queue.ask(one, task);
        }
        queue.ask(two, "b1");
        queue.find(two, "look-up");
        assert_eq!(queue.try_next(), Some(Next::Find("a1")));
        assert_eq!(queue.try_next(), Some(Next::Find("look-up")));
        assert_eq!(queue.try_next(), None, "others wait");
        queue.keep(one, "complete");
        assert_eq!(queue.try_next(), Some(Next::Keep("complete")));
        queue.found();
        assert_eq!(queue.try_next(), Some(Next::Find("b1")));
        queue.found();
        assert_eq!(queue.try_next(), Some(Next::Find("a2")));
    }

    #[test]
    fn what_a_session_that_is_over_wanted_to_know_is_dropped_and_its_files_are_kept() {
        let queue = Queue::default();
        let [one, two] = [queue.session(), queue.session()];
        for (session, task) in [(one, "a"), (one, "b"), (two, "c")] {
            queue.ask(session, task);
        }
        queue.find(one, "look-up");
        queue.keep(one, "complete");
        queue.forget(one);
        assert_eq!(queue.try_next(), Some(Next::Keep("complete")));
        assert_eq!(queue.try_next(), Some(Next::Find("c")));
        assert_eq!(queue.try_next(), None);
    }

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
