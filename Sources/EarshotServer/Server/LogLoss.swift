package import Synchronization

/// Lines of the log that were not written. The log is the process's, and so is this. Any thread.
package enum LogLoss {
    package static let lines = Atomic<UInt64>(0)
}
