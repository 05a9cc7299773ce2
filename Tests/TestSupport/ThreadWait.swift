package import Foundation

/// A thread, by which one can see how long the machine has kept it waiting for a processor: `/proc/PID/task/TID/schedstat` (proc(5)).
package struct ThreadWait: Sendable {
    private let path: String

    /// The calling thread.
    package static var current: ThreadWait {
        // "PID/task/TID". Without it the main thread's, which waits for little: then more counts as late.
        let thread = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/thread-self")) ?? "self"
        return ThreadWait(path: "/proc/\(thread)/schedstat")
    }

    /// The event loops of another process.
    package static func loops(of process: pid_t) throws -> [ThreadWait] {
        let folder = "/proc/\(process)/task"
        return try FileManager.default.contentsOfDirectory(atPath: folder).compactMap { thread in
            let name = try String(contentsOfFile: "\(folder)/\(thread)/comm", encoding: .utf8)
            return name.hasPrefix("NIO-ELT") ? ThreadWait(path: "\(folder)/\(thread)/schedstat") : nil
        }
    }

    /// How long it was ready to run and did not, since it began. Zero when it has ended.
    package var total: Duration {
        guard let text = try? String(contentsOfFile: self.path, encoding: .utf8) else { return .zero }
        // Time on a processor, time waiting for one, turns.
        let fields = text.split(separator: " ")
        return fields.count > 1 ? .nanoseconds(Int64(fields[1]) ?? 0) : .zero
    }
}
