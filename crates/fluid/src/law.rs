//! What a control law is to the integrator: variables, their rates of change, their limits.

use num_complex::Complex64;

/// The link, and how many flows share it.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    /// Bits a second.
    pub capacity: f64,
    /// Delay of the control loop besides queueing, in seconds.
    pub delay: f64,
    /// Number of flows.
    pub flows: usize,
}

impl Link {
    /// What each flow has if all have the same, in bits a second.
    pub fn fair_share(&self) -> f64 {
        self.capacity / self.flows as f64
    }

    /// The queue of the link, empty at first: the first shared variable of every law.
    pub fn queue(&self) -> Variable {
        let scale = self.capacity / 8.0 * 1e-4;
        Variable { name: "queue_bytes", limits: [0.0, f64::INFINITY], scale }
    }

    /// A rate of a flow: between a millionth of the capacity, where a law that divides by it still
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
    /// Between what it stays.
    pub limits: [f64; 2],
    /// How large it usually is, for differences.
    pub scale: f64,
}

/// Where variables stand in the state: first those that all flows share, then each flow's own.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// How many are shared.
    pub shared: usize,
    /// How many each flow has.
    pub own: usize,
}

impl Layout {
    /// Place of a flow's own variable.
    pub fn place(self, flow: usize, variable: usize) -> usize {
        self.shared + flow * self.own + variable
    }

    /// Place of a variable in the state of one flow that stands for all.
    pub fn in_one(self, place: usize) -> usize {
        if place < self.shared { place } else { self.shared + (place - self.shared) % self.own }
    }
}

/// The state as it was.
pub trait Past {
    /// The variable at a place, `delay` seconds ago.
    fn value(&self, place: usize, delay: f64) -> f64;
}

/// What a law sees of an instant.
#[derive(Clone, Copy)]
pub struct View<'a> {
    /// Seconds since the start.
    pub time: f64,
    /// All variables.
    pub state: &'a [f64],
    /// All variables, earlier.
    pub past: &'a dyn Past,
    /// Which flows have started.
    pub active: &'a [bool],
    /// Where variables stand.
    pub layout: Layout,
}

impl View<'_> {
    /// The queue in bytes.
    pub fn queue(&self) -> f64 {
        self.state[0]
    }

    /// The queue in bytes, `delay` seconds ago.
    pub fn past_queue(&self, delay: f64) -> f64 {
        self.past.value(0, delay)
    }

    /// A flow's own variable.
    pub fn own(&self, flow: usize, variable: usize) -> f64 {
        self.state[self.layout.place(flow, variable)]
    }

    /// A flow's own variable, `delay` seconds ago.
    pub fn past_own(&self, flow: usize, variable: usize, delay: f64) -> f64 {
        self.past.value(self.layout.place(flow, variable), delay)
    }

    /// The flows that have started.
    pub fn flows(&self) -> impl Iterator<Item = usize> + '_ {
        self.active.iter().enumerate().filter(|(_, active)| **active).map(|(flow, _)| flow)
    }
}

/// An open loop: its gain and phase at a complex frequency in radians a second.
pub type Loop = Box<dyn Fn(Complex64) -> Complex64>;

/// A control law: delay differential equations for flows on one link.
pub trait Law {
    /// The link and its flows.
    fn link(&self) -> Link;

    /// The variables that all flows share: first the queue.
    fn shared(&self) -> Vec<Variable> {
        vec![self.link().queue()]
    }

    /// The variables that each flow has of its own.
    fn own(&self) -> Vec<Variable>;

    /// The shared variables at the start.
    fn start(&self) -> Vec<f64> {
        vec![0.0]
    }

    /// A flow's own variables as it starts, at a rate in bits a second if that is given.
    fn start_flow(&self, rate: Option<f64>) -> Vec<f64>;

    /// What a flow sends, in bits a second.
    fn rate(&self, view: &View<'_>, flow: usize) -> f64;

    /// Sets the rates of change of all variables of active flows, and of the shared ones but the
    /// queue; a second.
    fn derivative(&self, view: &View<'_>, change: &mut [f64]);

    /// How far back it may look, in seconds. What it asks of earlier times is as it was then.
    fn longest_delay(&self) -> f64;

    /// The state in which nothing changes, with one flow standing for all; or why there is none.
    fn fixed_point(&self) -> Result<Vec<f64>, String>;

    /// The open loop as the paper's authors evaluated it, where that is not what follows from the law.
    fn published_loop(&self) -> Option<Loop> {
        None
    }

    /// Where its variables stand.
    fn layout(&self) -> Layout {
        Layout { shared: self.shared().len(), own: self.own().len() }
    }
}

impl dyn Law + '_ {
    /// Sets the rates of change of all variables.
    pub fn changes(&self, view: &View<'_>, change: &mut [f64]) {
        let sent: f64 = view.flows().map(|flow| self.rate(view, flow)).sum();
        self.derivative(view, change);
        change[0] = (sent - self.link().capacity) / 8.0;
    }
}
