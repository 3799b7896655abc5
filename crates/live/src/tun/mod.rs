//! A link between two network namespaces that hosts the simulator's links in real time.
