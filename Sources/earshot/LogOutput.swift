import EarshotServer
import Logging

#if canImport(Glibc)
import Glibc
#endif

/// The log on standard error: one line an event, as text or JSON.
enum LogOutput {
    static func logger(_ config: ServerConfig.Log) -> Logger {
        let format = config.format
        LoggingSystem.bootstrap { _ in LineLogHandler(format: format, logLevel: .info) }
        var logger = Logger(label: "earshot")
        logger.logLevel = config.level
        return logger
    }
}

/// Writes `time level message key=value …`, or the same as a JSON object.
struct LineLogHandler: LogHandler {
    let format: ServerConfig.Log.Format
    var logLevel: Logger.Level
    var metadata: Logger.Metadata = [:]

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { self.metadata[key] }
        set { self.metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        let all = self.metadata.merging(event.metadata ?? [:]) { $1 }
        // The order in which a reader looks for them; what is not named here follows by name.
        let first = ["conn", "remote", "role", "app", "stream", "reason"]
        let keys = first.filter { all[$0] != nil } + all.keys.filter { !first.contains($0) }.sorted()
        let pairs = keys.map { ($0, all[$0]?.description ?? "") }
        let time = WallClock.text(WallClock.ms)
        let line: String
        switch self.format {
        case .text:
            let fields = pairs.map { key, value in "\(key)=\(Self.quoteIfNeeded(value))" }.joined(separator: " ")
            let level = event.level.rawValue.uppercased()
            line = "\(time) \(level) \(event.message)\(fields.isEmpty ? "" : " ")\(fields)\n"
        case .json:
            let fields = [("time", time), ("level", event.level.rawValue), ("message", "\(event.message)")] + pairs
            line = "{" + fields.map { "\(Self.quote($0)):\(Self.quote($1))" }.joined(separator: ",") + "}\n"
        }
        var text = line
        text.withUTF8 { bytes in
            // A log that cannot be written has nowhere to say so.
            _ = write(STDERR_FILENO, bytes.baseAddress, bytes.count)
        }
    }

    private static func quoteIfNeeded(_ value: String) -> String {
        let plain = !value.isEmpty && value.unicodeScalars.allSatisfy { $0.value > 0x20 && $0 != "\"" && $0 != "=" && $0.value != 0x7F }
        return plain ? value : self.quote(value)
    }

    /// A JSON string; what peers sent cannot end a line or forge one.
    private static func quote(_ value: String) -> String {
        var out = "\""
        for scalar in value.unicodeScalars {
            switch scalar {
            case "\"": out += "\\\""
            case "\\": out += "\\\\"
            case "\n": out += "\\n"
            case "\r": out += "\\r"
            case "\t": out += "\\t"
            default:
                if scalar.value < 0x20 || scalar.value == 0x7F {
                    let hex = String(scalar.value, radix: 16)
                    out += "\\u" + String(repeating: "0", count: 4 - hex.count) + hex
                } else {
                    out.unicodeScalars.append(scalar)
                }
            }
        }
        return out + "\""
    }
}

/// Standard output, when what was printed must be seen now.
enum Terminal {
    static func flush() {
        fflush(nil)
    }
}

/// One descriptor a viewer: the default limit of 1,024 would be reached first of all.
enum OpenFiles {
    static func prepare(for connections: Int, _ log: Logger) {
        self.raiseLimit(log)
        self.growTable(to: connections)
    }

    /// A descriptor table that grows under a process with threads makes the caller wait for a grace period of the kernel's, 20 to 40 ms in
    /// which nobody is served. Grown once at the start, it never does so again.
    private static func growTable(to connections: Int) {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return }
        let highest = min(UInt64(limit.rlim_cur), UInt64(connections) + 256, 1 << 20)
        let copy = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, CInt(clamping: highest - 1))
        if copy >= 0 { close(copy) }
    }

    private static func raiseLimit(_ log: Logger) {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0, limit.rlim_cur < limit.rlim_max else { return }
        let wanted = min(limit.rlim_max, 1 << 20)
        limit.rlim_cur = wanted
        if setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) != 0 {
            log.warning("The limit of open files could not be raised", metadata: ["wanted": "\(wanted)"])
        }
    }
}
