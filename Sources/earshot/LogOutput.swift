import Commands
import CommandSupport
import LibC
import Logging
import ServerConfiguration
import Support
import Synchronization

/// The log on standard error: one line per event, as text or JSON.
enum LogOutput {
    static func logger(_ config: ServerConfig.Log) -> Logger {
        // A closed reader should fail the write; the signal would end the process.
        signal(SIGPIPE, SIG_IGN)
        let format = config.format
        let writer = LineWriter(descriptor: STDERR_FILENO) { LineLogHandler.note($0, $1, format) }
        LoggingSystem.bootstrap { LineLogHandler(format: format, writer: writer, level: $0 == Self.label ? Self.level : LogLevel(.info)) }
        AtExit.flush(writer)
        Self.level.set(config.level)
        return Logger(label: Self.label)
    }

    /// The level of all loggers made from the server's logger, except those with a level of their own.
    private static let level = LogLevel(.info)
    private static let label = "earshot"

    static func set(_ level: Logger.Level) { self.level.set(level) }
}

/// The least severe level that is logged, shared by many loggers. Any thread, without a lock: read for each line that might be written.
final class LogLevel: Sendable {
    private let rank: Atomic<Int>

    init(_ level: Logger.Level) { self.rank = Atomic(Self.rank(of: level)) }

    var current: Logger.Level { Self.all[self.rank.load(ordering: .relaxed)] }

    private static let all = Logger.Level.allCases

    func set(_ level: Logger.Level) { self.rank.store(Self.rank(of: level), ordering: .relaxed) }

    private static func rank(of level: Logger.Level) -> Int { Self.all.firstIndex(of: level) ?? 0 }
}

/// Flushes writers when the process calls exit. Any thread.
enum AtExit {
    private static let writers = Mutex<[LineWriter]>([])

    static func flush(_ writer: LineWriter) {
        let isFirst = self.writers.withLock { writers in
            writers.append(writer)
            return writers.count == 1
        }
        if isFirst { atexit { AtExit.flushAll() } }
    }

    /// Flushes all writers; each waits for two seconds at most.
    static func flushAll() { for writer in self.writers.withLock({ $0 }) { writer.flush() } }
}

/// Writes `time level message key=value …`, or the same as a JSON object.
struct LineLogHandler: LogHandler {
    let format: ServerConfig.Log.Format
    let writer: LineWriter
    let level: LogLevel
    private var ownLevel: Logger.Level?
    var logLevel: Logger.Level {
        get { self.ownLevel ?? self.level.current }
        set { self.ownLevel = newValue }
    }
    var metadata: Logger.Metadata = [:]

    init(format: ServerConfig.Log.Format, writer: LineWriter, level: LogLevel) {
        self.format = format
        self.writer = writer
        self.level = level
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { self.metadata[key] }
        set { self.metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        let all = self.metadata.merging(event.metadata ?? [:]) { $1 }
        // Readers look for these keys first; all others follow in alphabetical order.
        let first = ["conn", "remote", "role", "app", "stream", "reason"]
        let keys = first.filter { all[$0] != nil } + all.keys.filter { !first.contains($0) }.sorted()
        let pairs = keys.map { ($0, all[$0]?.description ?? "") }
        self.writer.write(Self.line(self.format, event.level, "\(event.message)", pairs))
    }

    /// The line that reports unwritten lines.
    static func note(_ lines: Int, _ loss: LineWriter.Loss, _ format: ServerConfig.Log.Format) -> String {
        let text = "\(lines) \(lines == 1 ? "line was" : "lines were") not written \(loss.reason)"
        return Self.line(format, .warning, text, [("linesDropped", "\(lines)")])
    }

    private static func line(
        _ format: ServerConfig.Log.Format, _ level: Logger.Level, _ message: String, _ pairs: [(String, String)]
    ) -> String {
        let time = Support.Instant.text(WallClock.ms)
        switch format {
        case .text:
            let fields = pairs.map { key, value in "\(key)=\(Self.quoteIfNeeded(value))" }.joined(separator: " ")
            // Some messages are made of errors' texts.
            return "\(time) \(level.rawValue.uppercased()) \(ShownText.escaped(message))\(fields.isEmpty ? "" : " ")\(fields)\n"
        case .json:
            let fields = [("time", time), ("level", level.rawValue), ("message", message)] + pairs
            return "{" + fields.map { "\(Self.quote($0)):\(Self.isNumber($0, $1) ? $1 : Self.quote($1))" }.joined(separator: ",") + "}\n"
        }
    }

    /// Whether a value is written as a JSON number. Decided by its key, so that an all-digit name of a stream or room stays a string.
    private static func isNumber(_ key: String, _ value: String) -> Bool {
        self.numbers.contains(key) && (1...18).contains(value.utf8.count) && (value.first != "0" || value.utf8.count == 1)
            && value.utf8.allSatisfy { (0x30...0x39).contains($0) }
    }

    private static let numbers: Set<String> = [
        "addressSpace", "after", "allowed", "asked", "attempts", "before", "bytes", "bytesIn", "bytesOut", "calls", "conn", "connections",
        "droppedFacts", "failed", "frames", "givenUp", "lagMs", "linesDropped", "linesHeldBack", "microseconds", "ms", "number",
        "openFiles", "pid", "pushes", "requests", "reserved", "rooms", "seconds", "secondsLeft", "status", "turnedAway", "used", "wanted",
    ]

    private static func quoteIfNeeded(_ value: String) -> String {
        let plain = !value.isEmpty && value.unicodeScalars.allSatisfy { $0 != " " && $0 != "\"" && $0 != "=" && !ShownText.isUnsafe($0) }
        return plain ? value : self.quote(value)
    }

    /// A JSON string; text from peers cannot end a line, forge one or steer a terminal.
    private static func quote(_ value: String) -> String {
        var out = ""
        DisplayText.quote(value, to: &out)
        return out
    }
}
