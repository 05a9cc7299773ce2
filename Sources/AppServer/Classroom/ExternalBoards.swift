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
    private let host: String
    private let appID: String
    private let post: OutboundPost
    private let log: Logger
    private let floods = LogRateLimiters(perMs: 10_000)

    private static let timeout = Duration.seconds(5)
    /// Pauses before the second and the third attempt at the end of a class.
    private static let pauses = [Duration.seconds(1), .seconds(10)]

    /// Nil when no other server is configured.
    init?(_ config: ServerConfig.Apps, post: @escaping OutboundPost, log: Logger) {
        guard var host = config.classroomWhiteboard else { return nil }
        while host.hasSuffix("/") { host.removeLast() }
        self.host = host
        self.appID = config.rongcloud.appKey ?? "earshot"
        self.post = post
        self.log = log
    }

    /// Creates a board: its URL, and its name on that server. Throws code 25.
    func create() async throws(GatheringRefusal) -> (url: String, service: String) {
        let call = ExternalBoardCall(.create, appID: self.appID, room: Classes.newID())
        guard let url = try await self.carryOut(call) else {
            throw call.refusal("The whiteboard server's answer has no address of a page.")
        }
        return (url, call.room)
    }

    /// Destroys a board. Throws code 27.
    func destroy(_ service: String) async throws(GatheringRefusal) {
        _ = try await self.carryOut(ExternalBoardCall(.destroy, appID: self.appID, room: service))
    }

    /// Destroys the boards of a class that has ended. Called for all changes of gatherings.
    func performed(_ change: GatheringRunner.Performed) {
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
                for pause in Self.pauses + [.zero] {
                    if (try? await self.destroy(service)) != nil { break }
                    if pause > .zero { try? await Task.sleep(for: pause) }
                }
            }
        }
    }

    private func carryOut(_ call: ExternalBoardCall) async throws(GatheringRefusal) -> String? {
        let answer: (status: Int, body: [UInt8])
        do {
            answer = try await self.post(
                "\(self.host)\(call.path)", [("Content-Type", ExternalBoardCall.contentType)], Array(call.body.utf8), Self.timeout)
        } catch {
            self.note(call, "\(error)")
            // Clients need not know that server's address.
            throw call.refusal("The whiteboard server cannot be reached.")
        }
        do throws(GatheringRefusal) {
            guard answer.status == 200 else { throw call.refusal("The whiteboard server answers with status \(answer.status).") }
            return try call.read(String(decoding: answer.body, as: UTF8.self))
        } catch {
            self.note(call, "\(error)")
            throw error
        }
    }

    private func note(_ call: ExternalBoardCall, _ error: String) {
        guard let held = self.floods.pass(call.path, nowMs: LoopSweeper.nowMs) else { return }
        var metadata: Logger.Metadata = ["call": "\(call.path)", "error": "\(error)"]
        if held > 0 { metadata["linesHeldBack"] = "\(held)" }
        self.log.warning("A call of the whiteboard server has failed", metadata: metadata)
    }
}
