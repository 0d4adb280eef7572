//! Building blocks of TCP's congestion control: the window, HyStart++ and paced starts.

pub mod hystart;
pub mod paced_start;
pub mod window;
