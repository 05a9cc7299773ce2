import HTTPTypes
import Rooms
import Upstream

extension APIRoute {
    private static let direction = Input(
        "direction", .choice() as Kind<RelayTask.Direction>, "push: the stream goes there; pull: it comes from there."
    )
    .required
    private static let app = Input("app", .streamApp, "The stream's app here.").required
    private static let name = Input("name", .streamName, "The stream's name here.").required
    private static let url = Input(
        "url", .text(bytes: 8...2_048), "The stream's address there, rtmp:// or rtmps://, with its credential. Not shown again."
    ).required
    private static let onDemand = Input("onDemand", .flag, "Of a pull: only while somebody plays.", fallback: false)
    private static let id = Input("taskId", .whole(1...Int64.max), "The task's number.").required

    /// Links to other servers.
    static let relayTasks: [APIRoute] = [
        APIRoute(
            .get, "/relay-tasks", "listRelayTasks", .relays, .ops, "Links to other servers, with their state.",
            answers: RelayTaskListAnswer.shape
        ) { call in
            RelayTaskListAnswer(list: call.core.relayTasks.all.map(RelayTaskAnswer.init))
        },
        APIRoute(
            .post, "/relay-tasks", "createRelayTask", .relays, .admin,
            "Forward a stream to another server, or pull one from there. Kept up across restarts until it is deleted.",
            body: [Self.direction.erased, Self.app.erased, Self.name.erased, Self.url.erased, Self.onDemand.erased],
            answers: RelayTaskAnswer.shape, status: .created, location: ("/relay-tasks/", "taskId"), failures: [.conflict]
        ) { call in
            let (direction, text) = (try call.value(Self.direction), try call.value(Self.url))
            let path = StreamPath(app: try call.value(Self.app), name: try call.value(Self.name))
            do throws(UpstreamError) {
                _ = try UpstreamURL(parsing: text)
            } catch {
                throw APIError(FieldError("url", "", "\(error)"))
            }
            let known = call.core.relayTasks.all.map(\.task)
            if known.contains(where: { $0.direction == direction && $0.path == path && $0.url == text }) {
                throw APIError(.conflict, .conflict, "There is this task already.")
            }
            // A stream that went out and came back would be its own publisher.
            if known.contains(where: { $0.direction != direction && $0.path == path && $0.url == text }) {
                throw APIError(.conflict, .conflict, "A task in the other direction has the same two ends: that would be a loop.")
            }
            if direction == .pull, known.contains(where: { $0.direction == .pull && $0.path == path }) {
                throw APIError(.conflict, .conflict, "\(path) is pulled from another address already.")
            }
            let task = try await call.rooms.createRelayTask(direction, path, url: text, onDemand: try call.value(Self.onDemand))
            do throws(UpstreamError) {
                return RelayTaskAnswer(try call.core.relayTasks.add(task, core: call.core))
            } catch {
                throw APIError(FieldError("url", "", "\(error)"))
            }
        },
        APIRoute(
            .get, "/relay-tasks/{taskId}", "getRelayTask", .relays, .ops, "How a link stands.", in: [Self.id.erased],
            answers: RelayTaskAnswer.shape
        ) { call in
            let id = try call.value(Self.id)
            guard let link = call.core.relayTasks.find(id) else { throw APIError.notFound("relay task", "\(id)") }
            return RelayTaskAnswer(link)
        },
        APIRoute(
            .delete, "/relay-tasks/{taskId}", "deleteRelayTask", .relays, .admin, "End a link, for good.", in: [Self.id.erased],
            answers: .nothing
        ) { call in
            let id = try call.value(Self.id)
            guard try await call.rooms.deleteRelayTask(id) else { throw APIError.notFound("relay task", "\(id)") }
            call.core.relayTasks.remove(id)
        },
    ]
}

struct RelayTaskListAnswer: Sendable {
    let list: [RelayTaskAnswer]

    static let shape = Shape<RelayTaskListAnswer>.object(
        "RelayTaskList",
        [.field("total", .count, "How many there are.", \.list.count), .field("list", .list(RelayTaskAnswer.shape), "The tasks.", \.list)])
}

struct RelayTaskAnswer: Sendable {
    let task: RelayTask
    let status: UpstreamStatus?
    let refusal: String?
    let target: String

    init(_ link: RelayLink) {
        self.task = link.task
        self.status = link.status
        self.refusal = link.refusal
        do throws(UpstreamError) { self.target = try UpstreamURL(parsing: link.task.url).redacted } catch { self.target = "" }
    }

    static let shape = Shape<RelayTaskAnswer>.object(
        "RelayTask",
        [
            .field("taskId", .count, "Its number.", \.task.id),
            .field("direction", .choice(), "push: the stream goes there; pull: it comes from there.", \.task.direction),
            .field("app", .text, "The stream's app here.", \.task.path.app),
            .field("name", .text, "The stream's name here.", \.task.path.name),
            .field("target", .text, "The other server, without the credential.", \.target),
            .field("onDemand", .flag, "Of a pull: only while somebody plays.", \.task.onDemand),
            .field("createdAt", .instant, "When it was made.", \.task.createdAt),
            .field(
                "state", .words(["idle", "connecting", "running", "waiting", "stopped", "failed"]),
                "waiting: for the next attempt. idle and stopped: for a publisher or a viewer."
            ) { $0.status?.state.word ?? "idle" },
            .field("since", .nullable(.instant), "Of the state.") { $0.status?.sinceMs },
            .field("lastError", .nullable(.text), "What ended the last connection, or speaks against publishing here.") {
                $0.refusal ?? $0.status?.lastError.map { "\($0)" }
            },
            .field("attempts", .count, "To connect.") { $0.status?.attempts ?? 0 },
            .field("bytesIn", .count, "Received.") { $0.status?.bytesIn ?? 0 },
            .field("bytesOut", .count, "Sent.") { $0.status?.bytesOut ?? 0 },
            .field("framesIn", .count, "Received.") { $0.status?.framesIn ?? 0 },
            .field("framesOut", .count, "Sent.") { $0.status?.framesOut ?? 0 },
            .field("framesDropped", .count, "Left out because the other server was slow.") {
                UInt64(($0.status?.droppedVideo ?? 0) + ($0.status?.droppedAudio ?? 0))
            },
        ])
}
