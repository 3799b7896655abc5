//! A relay between UDP programs that hosts the simulator's links in real time.
