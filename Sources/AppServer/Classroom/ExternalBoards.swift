import Apps
import Listening
import Logging
import ServerConfiguration
import Support

/// Whiteboards that another server keeps (`apps.classroom.whiteboard`). Made only when one is configured. Any thread.
///
/// A board is created there before the class gets it, and destroyed there before the class loses it. Without that server's confirmation the class
/// stays unchanged. Boards that a class still has at its end are destroyed afterwards.
final class ExternalBoards: Sendable {
    private let calls: ServiceCalls
    private let appID: String

    /// Pauses before the second and the third attempt at the end of a class.
    private static let pauses = [Duration.seconds(1), .seconds(10)]

    /// Nil when no other server is configured.
    init?(_ config: ServerConfig.Apps, post: @escaping OutboundPost, log: Logger) {
        guard let host = config.classroomWhiteboard else { return nil }
        self.calls = ServiceCalls(
            "The whiteboard server", host: host, failure: "A call of the whiteboard server has failed", post: post, log: log)
        self.appID = config.rongcloud.appKey ?? "earshot"
    }

    /// Creates a board: its URL, and its name on that server. Throws code 25.
    func create() async throws(GatheringRefusal) -> (url: String, service: String) {
        let call = ExternalBoardCall(.create, appID: self.appID, room: Classes.newID())
        guard let url = try await self.call(call) else {
            throw call.refusal("The whiteboard server's answer has no address of a page.")
        }
        return (url, call.room)
    }

    /// Destroys a board. Throws code 27.
    func destroy(_ service: String) async throws(GatheringRefusal) {
        _ = try await self.call(ExternalBoardCall(.destroy, appID: self.appID, room: service))
    }

    /// Destroys the boards of a class that has ended. Called for all changes of gatherings.
    func applied(_ change: GatheringRunner.AppliedChange) {
        guard let room = change.former as? Classroom else { return }
        let ends = change.effects.contains { if case .ended = $0 { true } else { false } }
        guard ends else { return }
        self.discard(room.boards.compactMap(\.service))
    }

    /// Destroys boards that belong to no class any more, in the background.
    func discard(_ services: [String]) {
        guard !services.isEmpty else { return }
        Task {
            for service in services {
                // What cannot be destroyed stays there; the log has it.
                try? await ServiceCalls.again(after: Self.pauses) { () async throws(GatheringRefusal) in try await self.destroy(service) }
            }
        }
    }

    private func call(_ call: ExternalBoardCall) async throws(GatheringRefusal) -> String? {
        try await self.calls.call(
            call.path, [("Content-Type", ExternalBoardCall.contentType)], call.body, refusal: { call.refusal($0) },
            read: { (text) throws(GatheringRefusal) in try call.read(text) })
    }
}
