import Relay
import Rooms
import Support

/// Decides which streams are recorded without a call. A value, owned by ``Recordings``.
struct RecordingPolicy {
    /// Apps that rooms without a policy of their own are recorded in; "*" is every app.
    var apps: [String]
    /// Streams whose recording a call has stopped, by path. They are not recorded again while they live.
    private var held: NameTable<Held> = [:]

    private struct Held {
        weak var stream: Relay.Stream?
    }

    init(apps: [String]) { self.apps = apps }

    /// Whether a stream of this app is recorded, by its room's policy and the settings.
    func isWanted(_ app: String, _ record: RoomPolicy.Record) -> Bool {
        switch record {
        case .always: true
        case .never: false
        case .apps: self.apps.contains { $0 == "*" || $0.exact == app.exact }
        }
    }

    /// Whether a call has stopped the recording of this stream.
    func isHeld(_ path: String, _ stream: Relay.Stream?) -> Bool {
        guard let held = self.held[path]?.stream else { return false }
        return held === stream
    }

    /// Stops recording this stream by policy. A later stream of the same name is not affected.
    mutating func hold(_ path: String, _ stream: Relay.Stream?) { self.held[path] = Held(stream: stream) }

    mutating func release(_ path: String) { self.held[path] = nil }

    /// Forgets streams that are gone.
    mutating func forgetGone() { self.held = self.held.filter { $0.value.stream != nil } }
}
