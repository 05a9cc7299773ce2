import Crypto
import Support
import Synchronization

/// Tracks the servers that streams have come through, so that no stream feeds itself. Any thread.
///
/// Every stream of every server has a mark, which is meaningless to others. Links send marks in the command object of `connect`, under ``property``.
/// A publishing link sends its stream's way so far; a playing link sends the marks of the streams that it plays for. The server sends a playing link
/// the way of the played stream in the status of `play`, and again when a publisher arrives. Foreign servers and clients neither send nor use any of
/// this.
package final class LoopDetector: Sendable {
    package static let property = "earshotPath"
    /// A way of this many servers counts as a loop.
    static let mostHops = 8
    /// Most marks in one text.
    private static let mostMarks = 64
    /// Characters of a mark.
    private static let markLength = 16

    private struct State {
        /// Present and imminent publishers of each stream, newest last.
        var sources: NameTable<[(owner: String, marks: [String])]> = [:]
        /// Marks that each stream is played for, by player.
        var sinks: NameTable<[String: [String]]> = [:]
    }

    private let key = SymmetricKey(size: .bits256)
    private let state = Mutex(State())

    /// The mark of a stream here, constant while the server runs.
    package func mark(of path: String) -> String {
        SecretText.hex(Array(HMAC<SHA256>.authenticationCode(for: Array(path.utf8), using: self.key).prefix(Self.markLength / 2)))
    }

    /// The marks in a peer's text; none when it is malformed.
    package static func marks(_ text: String?) -> [String] {
        guard let text, !text.isEmpty, text.utf8.count <= Self.mostMarks * (Self.markLength + 1) else { return [] }
        let marks = text.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
        let isGood = marks.allSatisfy { mark in
            mark.utf8.count == Self.markLength
                && mark.utf8.allSatisfy { (0x30...0x39).contains($0) || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains($0) }
        }
        return isGood ? marks : []
    }

    package static func text(_ marks: [String]) -> String { marks.prefix(self.mostMarks).joined(separator: ",") }

    /// The reason why a stream that came this way may not feed `path`; nil when it may.
    package func objection(to marks: [String], feeding path: String) -> String? {
        if marks.contains(self.mark(of: path)) { return "That is a loop: the stream has already come through \(path) of this server." }
        guard marks.count < Self.mostHops else { return "That is a loop: the stream has come through \(marks.count) servers." }
        return nil
    }

    /// The reason why `path` may not be played for these streams; nil when it may.
    package func objection(to sinks: [String], playing path: String) -> String? {
        sinks.contains(self.mark(of: path)) ? "That is a loop: this play would feed \(path) of this server with itself." : nil
    }

    // MARK: What is published

    /// Records a publisher and the way its stream has come.
    package func cameIn(_ path: String, _ marks: [String], owner: String) {
        self.state.withLock { state in
            var sources = state.sources[path, default: []]
            sources.removeAll { $0.owner == owner }  // compares our own ids
            sources.append((owner, marks))
            state.sources[path] = sources
        }
    }

    package func left(_ path: String, owner: String) {
        self.state.withLock { state in
            state.sources[path]?.removeAll { $0.owner == owner }  // compares our own ids
            if state.sources[path]?.isEmpty == true { state.sources[path] = nil }
        }
    }

    /// The marks that go out with the stream: its way here, and its own mark.
    package func way(of path: String) -> [String] {
        (self.state.withLock { $0.sources[path]?.last?.marks } ?? []) + [self.mark(of: path)]
    }

    // MARK: What is played

    /// Records a player that feeds the streams with these marks.
    package func plays(_ path: String, for sinks: [String], owner: String) {
        guard !sinks.isEmpty else { return }
        self.state.withLock { $0.sinks[path, default: [:]][owner] = sinks }
    }

    package func playEnded(_ path: String, owner: String) {
        self.state.withLock { state in
            state.sinks[path]?[owner] = nil
            if state.sinks[path]?.isEmpty == true { state.sinks[path] = nil }
        }
    }

    /// The marks that a link sends to play a stream elsewhere. These are this stream's, and those of the streams it feeds.
    package func sinks(of path: String) -> [String] {
        let further = self.state.withLock { Set(($0.sinks[path] ?? [:]).values.joined()) }
        return [self.mark(of: path)] + further.sorted().prefix(Self.mostMarks - 1)
    }
}
