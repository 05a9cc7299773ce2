import Crypto
import Synchronization

/// Which way the streams here have come through other servers, so that none is fed from itself. Any thread.
///
/// Every stream of every server has a mark, which says nothing to others. Links tell marks in the command object of `connect`, under
/// ``property``: one that publishes those of its stream's way so far, one that plays those of the streams that it is for. The server tells a
/// link that plays the way of what it plays in the status of `play`, and again when a publisher comes. Foreign servers and clients neither
/// say nor heed any of this.
final class StreamOrigins: Sendable {
    static let property = "earshotPath"
    /// Servers that a stream may have come through.
    static let mostHops = 8
    /// Marks in one text.
    private static let mostMarks = 64
    /// Characters of a mark.
    private static let markLength = 16

    private struct State {
        /// Those who publish a stream or are about to, the newest last.
        var sources: [String: [(owner: String, marks: [String])]] = [:]
        /// Those who play a stream for streams of other servers.
        var sinks: [String: [String: [String]]] = [:]
    }

    private let key = SymmetricKey(size: .bits256)
    private let state = Mutex(State())

    /// Of a stream here: the same while the server runs.
    func mark(of path: String) -> String {
        SecretText.hex(Array(HMAC<SHA256>.authenticationCode(for: Array(path.utf8), using: self.key).prefix(Self.markLength / 2)))
    }

    /// The marks in a peer's text; none when it is not of that form.
    static func marks(_ text: String?) -> [String] {
        guard let text, !text.isEmpty, text.utf8.count <= Self.mostMarks * (Self.markLength + 1) else { return [] }
        let marks = text.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
        let isGood = marks.allSatisfy { mark in
            mark.utf8.count == Self.markLength
                && mark.utf8.allSatisfy { (0x30...0x39).contains($0) || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains($0) }
        }
        return isGood ? marks : []
    }

    static func text(_ marks: [String]) -> String { marks.prefix(self.mostMarks).joined(separator: ",") }

    /// What speaks against feeding a stream here with one that has come this way; nil: nothing.
    func objection(to marks: [String], feeding path: String) -> String? {
        if marks.contains(self.mark(of: path)) { return "That is a loop: what comes there is \(path) of this server itself." }
        guard marks.count < Self.mostHops else { return "That is a loop: it has come through \(marks.count) servers." }
        return nil
    }

    /// What speaks against playing a stream here for streams of other servers.
    func objection(to sinks: [String], playing path: String) -> String? {
        sinks.contains(self.mark(of: path)) ? "That is a loop: it would be played to feed \(path) of this server itself." : nil
    }

    // MARK: What is published

    /// A publisher of the stream, whose stream has come this way.
    func cameIn(_ path: String, _ marks: [String], owner: String) {
        self.state.withLock { state in
            var sources = state.sources[path, default: []]
            sources.removeAll { $0.owner == owner }
            sources.append((owner, marks))
            state.sources[path] = sources
        }
    }

    func left(_ path: String, owner: String) {
        self.state.withLock { state in
            state.sources[path]?.removeAll { $0.owner == owner }
            if state.sources[path]?.isEmpty == true { state.sources[path] = nil }
        }
    }

    /// What is told with the stream where it goes: its way here, and its mark.
    func way(of path: String) -> [String] {
        (self.state.withLock { $0.sources[path]?.last?.marks } ?? []) + [self.mark(of: path)]
    }

    // MARK: What is played

    /// Somebody plays the stream for these.
    func plays(_ path: String, for sinks: [String], owner: String) {
        guard !sinks.isEmpty else { return }
        self.state.withLock { $0.sinks[path, default: [:]][owner] = sinks }
    }

    func playEnded(_ path: String, owner: String) {
        self.state.withLock { state in
            state.sinks[path]?[owner] = nil
            if state.sinks[path]?.isEmpty == true { state.sinks[path] = nil }
        }
    }

    /// What a link tells that plays elsewhere for this stream: its mark, and those of the streams that are fed with it.
    func sinks(of path: String) -> [String] {
        let further = self.state.withLock { Set(($0.sinks[path] ?? [:]).values.joined()) }
        return [self.mark(of: path)] + further.sorted().prefix(Self.mostMarks - 1)
    }
}
