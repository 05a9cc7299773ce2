package import Synchronization

/// Counts log lines that were not written. Process-wide, like the log. Any thread.
package enum LogLoss {
    package static let lines = Atomic<UInt64>(0)
}
