//! Control laws for the integrator: variables, their derivatives and their limits.

use num_complex::Complex64;

/// Link and the number of flows that share it.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    /// Capacity in bit/s.
    pub capacity: f64,
    /// Delay of the control loop besides queueing, in seconds.
    pub delay: f64,
    /// Number of flows.
    pub flows: usize,
}

impl Link {
    /// Returns the equal share of each flow, in bit/s.
    pub fn fair_share(&self) -> f64 {
        self.capacity / self.flows as f64
    }

    /// Returns the queue of the link, initially empty: the first shared variable of every law.
    pub fn queue(&self) -> Variable {
        let scale = self.capacity / 8.0 * 1e-4;
        Variable { name: "queue_bytes", limits: [0.0, f64::INFINITY], scale }
    }

    /// Returns the rate of a flow: between a millionth of the capacity, where a law that divides by it still
    /// works, and the capacity.
    pub fn rate(&self, name: &'static str) -> Variable {
        let limits = [self.capacity * 1e-6, self.capacity];
        Variable { name, limits, scale: self.fair_share() }
    }
}

/// A variable of a law.
#[derive(Clone, Copy, Debug)]
pub struct Variable {
    /// Name, which ends in its unit if it has one.
    pub name: &'static str,
    /// Limits.
    pub limits: [f64; 2],
    /// Typical magnitude, for numerical differences.
    pub scale: f64,
}

/// Order of variables in the state: the shared ones first, then those of each flow.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// Number of shared variables.
    pub shared: usize,
    /// Number of variables per flow.
    pub own: usize,
}

impl Layout {
    /// Returns the index of a variable of a flow.
    pub fn place(self, flow: usize, variable: usize) -> usize {
        self.shared + flow * self.own + variable
    }

    /// Returns the index of a variable in the state of one flow that represents all.
    pub fn in_one(self, place: usize) -> usize {
        if place < self.shared { place } else { self.shared + (place - self.shared) % self.own }
    }
}

/// Past states.
pub trait Past {
    /// Returns the variable at an index, `delay` seconds ago.
    fn value(&self, place: usize, delay: f64) -> f64;
}

/// Input of a law at an instant.
#[derive(Clone, Copy)]
pub struct View<'a> {
    /// Time since the start, in seconds.
    pub time: f64,
    /// All variables.
    pub state: &'a [f64],
    /// All variables at earlier times.
    pub past: &'a dyn Past,
    /// Flags of flows that have started.
    pub active: &'a [bool],
    /// Order of variables.
    pub layout: Layout,
}

impl View<'_> {
    /// Returns the queue in bytes.
    pub fn queue(&self) -> f64 {
        self.state[0]
    }

    /// Returns the queue in bytes, `delay` seconds ago.
    pub fn past_queue(&self, delay: f64) -> f64 {
        self.past.value(0, delay)
    }

    /// Returns a variable of a flow.
    pub fn own(&self, flow: usize, variable: usize) -> f64 {
        self.state[self.layout.place(flow, variable)]
    }

    /// Returns a variable of a flow, `delay` seconds ago.
    pub fn past_own(&self, flow: usize, variable: usize, delay: f64) -> f64 {
        self.past.value(self.layout.place(flow, variable), delay)
    }

    /// Returns the flows that have started.
    pub fn flows(&self) -> impl Iterator<Item = usize> + '_ {
        self.active.iter().enumerate().filter(|(_, active)| **active).map(|(flow, _)| flow)
    }
}

/// Open loop: gain and phase at a complex frequency in rad/s.
pub type Loop = Box<dyn Fn(Complex64) -> Complex64>;

/// Control law: delay differential equations for flows on one link.
pub trait Law {
    /// Returns the link and its flows.
    fn link(&self) -> Link;

    /// Returns the shared variables; the queue is the first.
    fn shared(&self) -> Vec<Variable> {
        vec![self.link().queue()]
    }

    /// Returns the variables of each flow.
    fn own(&self) -> Vec<Variable>;

    /// Returns the initial shared variables.
    fn start(&self) -> Vec<f64> {
        vec![0.0]
    }

    /// Returns the initial variables of a flow, at `rate` in bit/s if it is given.
    fn start_flow(&self, rate: Option<f64>) -> Vec<f64>;

    /// Returns the sending rate of a flow, in bit/s.
    fn rate(&self, view: &View<'_>, flow: usize) -> f64;

    /// Sets the derivatives per second of all variables of active flows, and of the shared variables
    /// except the queue.
    fn derivative(&self, view: &View<'_>, change: &mut [f64]);

    /// Returns the longest delay of a past state that the law reads, in seconds.
    fn longest_delay(&self) -> f64;

    /// Returns the fixed point, with one flow representing all, or the reason for its absence.
    fn fixed_point(&self) -> Result<Vec<f64>, String>;

    /// Returns the open loop that the paper's authors evaluated, if it differs from the law's.
    fn published_loop(&self) -> Option<Loop> {
        None
    }

    /// Returns the order of its variables.
    fn layout(&self) -> Layout {
        Layout { shared: self.shared().len(), own: self.own().len() }
    }
}

impl dyn Law + '_ {
    /// Sets the derivatives of all variables.
    pub fn changes(&self, view: &View<'_>, change: &mut [f64]) {
        let sent: f64 = view.flows().map(|flow| self.rate(view, flow)).sum();
        self.derivative(view, change);
        change[0] = (sent - self.link().capacity) / 8.0;
    }
}
