/// A room's timeouts, and whether its streams are recorded. Milliseconds. Every room has its own, copied from the server's.
package struct RoomPolicy: Sendable, Equatable, Codable {
    /// From creation to first media.
    package var neverStartedMs: Int64 = 300_000
    /// How long the room waits for a publisher whose connection broke (or that was dropped).
    package var graceMs: Int64 = 30_000
    /// How long the room waits for a publisher that ended its stream.
    package var cleanStopMs: Int64 = 3_000
    /// Silence of a connected publisher after which the room is interrupted.
    package var mediaIdleMs: Int64 = 15_000
    /// How long the room waits for a publisher that is connected but silent.
    package var idleGraceMs: Int64 = 120_000
    /// How long the room waits for a publisher that announced a pause.
    package var pauseGraceMs: Int64 = 120_000
    package var heartbeatMs: Int64 = 15_000
    /// Heartbeats missed until the sender counts as gone.
    package var heartbeatMisses = 3
    /// How long a room without an active stream outlives its owner's leaving.
    package var ownerOfflineMs: Int64 = 300_000
    /// Maximum time from first media to the end.
    package var maxDurationMs: Int64 = 12 * 3_600_000
    /// How long an ended room can still be looked up and its id stays taken.
    package var retentionMs: Int64 = 24 * 3_600_000
    /// Default lifetime of a signed URL.
    package var urlLifetimeMs: Int64 = 24 * 3_600_000

    /// Whether its streams are recorded while live.
    package var record = Record.apps

    package enum Record: String, Sendable, Codable, CaseIterable {
        /// Follows the server's setting for the streams' app.
        case apps
        case always
        case never
    }

    package init() {}

    /// One setting of the policy: its name in API and configuration, and the values it may have.
    package struct Field: Sendable {
        /// The name in the API, which uses seconds: "neverStarted".
        package let name: String
        package let get: @Sendable (RoomPolicy) -> Int64
        package let set: @Sendable (inout RoomPolicy, Int64) -> Void
        /// In the unit of `get` and `set`.
        package let range: ClosedRange<Int64>
        package let kind: Kind
        /// False for counts and enumerations.
        package var isDuration: Bool { self.kind == .duration }

        package enum Kind: Sendable, Equatable {
            case duration, count
            /// The value is an index into this list.
            case words([String])
        }

        /// The list's entry for a value; nil if there is none.
        package func word(_ value: Int64) -> String? {
            guard case .words(let words) = self.kind, let index = Int(exactly: value), words.indices.contains(index) else { return nil }
            return words[index]
        }
    }

    private static let day: Int64 = 86_400_000

    private static func duration(
        _ name: String, _ path: any WritableKeyPath<RoomPolicy, Int64> & Sendable, _ range: ClosedRange<Int64>
    ) -> Field {
        Field(name: name, get: { $0[keyPath: path] }, set: { $0[keyPath: path] = $1 }, range: range, kind: .duration)
    }

    /// All settings, for reading, checking and showing them.
    package static let fields: [Field] = [
        duration("neverStarted", \.neverStartedMs, 1_000...7 * day),
        duration("grace", \.graceMs, 0...day),
        duration("cleanStop", \.cleanStopMs, 0...day),
        duration("mediaIdle", \.mediaIdleMs, 1_000...day),
        duration("idleGrace", \.idleGraceMs, 1_000...day),
        duration("pauseGrace", \.pauseGraceMs, 1_000...day),
        duration("heartbeat", \.heartbeatMs, 1_000...3_600_000),
        Field(
            name: "heartbeatMisses", get: { Int64($0.heartbeatMisses) }, set: { $0.heartbeatMisses = Int($1) }, range: 1...100,
            kind: .count),
        duration("ownerOffline", \.ownerOfflineMs, 1_000...7 * day),
        duration("maxDuration", \.maxDurationMs, 1_000...30 * day),
        duration("retention", \.retentionMs, 0...90 * day),
        duration("urlLifetime", \.urlLifetimeMs, 1_000...30 * day),
        Field(
            name: "record", get: { Int64(Record.allCases.firstIndex(of: $0.record) ?? 0) },
            set: { policy, index in
                // Out of range only in a store that a later version wrote.
                policy.record = Int(exactly: index).flatMap { Record.allCases.indices.contains($0) ? Record.allCases[$0] : nil } ?? .apps
            }, range: 0...Int64(Record.allCases.count - 1), kind: .words(Record.allCases.map(\.rawValue))),
    ]
}
