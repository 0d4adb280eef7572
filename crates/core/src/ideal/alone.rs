//! A flow by itself: packets back to back at line rate, stored and forwarded at every hop.
