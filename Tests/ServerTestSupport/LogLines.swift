import Foundation
package import Logging
import TestSupport

/// The log lines of a server.
package final class LogLines: @unchecked Sendable {
    private let lock = NSLock()
    private var lines: [String] = []

    package init() {}

    package var all: [String] { self.lock.withLock { self.lines } }
    package func append(_ line: String) { self.lock.withLock { self.lines.append(line) } }
    package func contains(_ parts: String...) -> Bool { self.contains(parts) }
    private func contains(_ parts: [String]) -> Bool { self.all.contains { line in parts.allSatisfy(line.contains) } }

    /// Waits up to a minute for such a line: a client may see an effect before the line is logged.
    package func comes(_ parts: String...) async -> Bool {
        (try? await eventually("the line") { self.contains(parts) }) != nil
    }
}

package struct CollectingLogHandler: LogHandler {
    package let lines: LogLines
    package var logLevel = Logger.Level.info
    package var metadata: Logger.Metadata = [:]

    package init(lines: LogLines) { self.lines = lines }

    package subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { self.metadata[key] }
        set { self.metadata[key] = newValue }
    }

    package func log(event: LogEvent) {
        let all = self.metadata.merging(event.metadata ?? [:]) { $1 }
        let fields = all.sorted { $0.key < $1.key }.map { "\($0)=\($1)" }.joined(separator: " ")
        self.lines.append("\(event.level) \(event.message) \(fields)")
    }
}
