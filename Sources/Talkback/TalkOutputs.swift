import Rooms
import Streaming
import Talk

/// A channel's mixes that exist as streams. A mix without listeners ends soon; a later listener restarts it at the channel's time. A plain value,
/// under the channel's lock.
struct TalkOutputs {
    struct Key: Hashable, Sendable {
        let target: TalkAddress
        let codec: TalkCodec
    }

    enum Output {
        case opening(Task<Void, Never>)
        case open(DerivedStream)
        /// Its name was taken; retried after that.
        case refused(untilMs: Int64)
    }

    private(set) var all: [Key: Output] = [:]
    private var unusedSinceMs: [Key: Int64] = [:]

    /// A mix without listeners lingers for this long.
    private static let lingerMs: Int64 = 1_000
    /// Delay before a taken name is tried again, such as an ending mix's.
    private static let retryMs: Int64 = 100

    subscript(key: Key) -> Output? { self.all[key] }

    /// Whether the mix should be opened now.
    func lacks(_ key: Key, nowMs: Int64) -> Bool {
        switch self.all[key] {
        case nil: true
        case .refused(let untilMs): nowMs >= untilMs
        case .opening, .open: false
        }
    }

    mutating func begin(_ key: Key, _ task: Task<Void, Never>) { self.all[key] = .opening(task) }

    /// Records the opened stream; nil: its name was taken. Returns false if no listener or recording needs it any more.
    mutating func opened(_ key: Key, _ stream: DerivedStream?, nowMs: Int64) -> Bool {
        guard case .opening? = self.all[key] else { return false }
        self.all[key] = stream.map { .open($0) } ?? .refused(untilMs: nowMs + Self.retryMs)
        return true
    }

    /// Removes and returns streams unused for a while; the caller ends them.
    mutating func removeUnused(_ wanted: Set<Key>, nowMs: Int64) -> [DerivedStream] {
        var unused: [DerivedStream] = []
        for (key, output) in Array(self.all) {
            guard !wanted.contains(key) else {
                self.unusedSinceMs[key] = nil
                continue
            }
            let since = self.unusedSinceMs[key] ?? nowMs
            self.unusedSinceMs[key] = since
            guard nowMs - since >= Self.lingerMs else { continue }
            if case .open(let stream) = output { unused.append(stream) }
            self.all[key] = nil
            self.unusedSinceMs[key] = nil
        }
        return unused
    }

    /// Removes and returns all streams; the caller ends them.
    mutating func removeAll() -> [DerivedStream] {
        defer { self = TalkOutputs() }
        return self.all.values.compactMap { if case .open(let stream) = $0 { stream } else { nil } }
    }
}
