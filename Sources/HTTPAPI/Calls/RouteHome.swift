import RoomRegistry
import Rooms
import Support

/// What only one node of a cluster has: its connections, and files on its disk. Calls about it are carried out there.
package enum RouteHome: Sendable {
    case stream, room, session, recording, snapshot, gathering

    /// What a call with this path is about, as the registry knows it.
    func thing(_ path: [JSONValue.Member]) -> NodeThing? {
        func value(_ name: String) -> String? {
            guard case .string(let text)? = JSONValue.object(path)[name] else { return nil }
            return text
        }
        switch self {
        case .stream: return value("app").flatMap { app in value("name").map { .stream(StreamPath(app: app, name: $0)) } }
        case .room: return value("roomId").map(NodeThing.room)
        case .session: return value("sessionId").flatMap(UInt64.init).map { .node(Int64(clamping: $0 >> SessionNumber.nodeShift)) }
        case .recording: return value("recordingId").map(NodeThing.recording)
        case .gathering: return value("gatheringId").map(NodeThing.gathering)
        case .snapshot: return value("snapshotId").map(NodeThing.snapshot)
        }
    }
}
