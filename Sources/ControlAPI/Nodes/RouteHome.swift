import Delivery
import RoomRegistry
import Rooms
import Support

/// Calls about what only one node has: its connections, and files on its disk. In a cluster they are carried out there.
extension APIRoute {
    private enum Home { case stream, room, session, recording, snapshot, gathering }

    private static let homes: [String: Home] = [
        "getStream": .stream, "getStreamStats": .stream, "dropStream": .stream, "reconnectViewers": .stream,
        "recordRoom": .room, "getSnapshot": .room,
        "getTalk": .room, "changeTalk": .room, "changeFloor": .room, "muteTalker": .room, "kickTalker": .room, "allowTalker": .room,
        "getSession": .session, "endSession": .session, "getSessionTrace": .session, "reconnectSession": .session,
        "downloadRecording": .recording, "deleteRecording": .recording, "downloadSnapshot": .snapshot,
        "getGathering": .gathering, "endGathering": .gathering, "kickFromGathering": .gathering, "pauseQueue": .gathering,
        "resumeQueue": .gathering, "removeFromQueue": .gathering,
    ]

    /// Names of calls that are sent on, for a check that they exist.
    static var homedNames: Set<String> { Set(self.homes.keys) }

    /// What the call is about, as the registry knows it. Nil if every node can carry it out.
    func thing(_ path: [JSONValue.Member]) -> NodeThing? {
        func value(_ name: String) -> String? {
            guard case .string(let text)? = JSONValue.object(path)[name] else { return nil }
            return text
        }
        switch Self.homes[self.name] {
        case nil: return nil
        case .stream: return value("app").flatMap { app in value("name").map { .stream(StreamPath(app: app, name: $0)) } }
        case .room: return value("roomId").map(NodeThing.room)
        case .session: return value("sessionId").flatMap(UInt64.init).map { .node(Int64(clamping: $0 >> SessionNumber.nodeShift)) }
        case .recording: return value("recordingId").map(NodeThing.recording)
        case .gathering: return value("gatheringId").map(NodeThing.gathering)
        case .snapshot: return value("snapshotId").map(NodeThing.snapshot)
        }
    }
}
