import Access
package import HTTPAPI
import HTTPServer
import HTTPTypes
import LinkTransport
import Logging
import Outbound
import RoomRegistry
import Rooms
import ServerConfiguration
import Streaming
import Support

package enum LinkRoutes {
    private static let direction = Input(
        "direction", .choice() as InputType<Link.Direction>,
        "push: sends the stream to the other server; pull: fetches it from there."
    )
    .required
    private static let app = Input("app", .streamApp, "The stream's app on this server.").required
    private static let name = Input("name", .streamName, "The stream's name on this server.").required
    private static let url = Input(
        "url", .text(length: 8...2_048),
        "The stream's address on the other server, rtmp:// or rtmps://, with its credential. Never shown again."
    ).required
    private static let onDemand = Input("onDemand", .flag, "For a pull: runs only while somebody plays the stream.", fallback: false)
    private static let id = Input("linkId", .whole(1...Int64.max), "The link's number.").required

    /// Links to other servers.
    package static let all: [Route<LinkTable>] = [
        Route<LinkTable>(
            .get, "/links", "listLinks", .links, .ops, .list, "List the links to other servers, with their state.",
            answers: LinkListAnswer.outputType
        ) { call in
            var list: [LinkAnswer] = []
            for running in call.services.all { if try await call.sees(running.link.path) { list.append(LinkAnswer(running)) } }
            return LinkListAnswer(list: list)
        },
        Route<LinkTable>(
            storing: "/links", "createLink", .links, .admin, .creation,
            "Push a stream to another server, or pull one from there. The link is kept up, across restarts too, until it is deleted.",
            body: [Self.direction, Self.app, Self.name, Self.url, Self.onDemand],
            answers: LinkAnswer.outputType, status: .created, location: ("/links/", "linkId"), failures: [.conflict]
        ) { call, keep in
            let (direction, text) = (try call.value(Self.direction), try call.value(Self.url))
            let path = StreamPath(app: try call.value(Self.app), name: try call.value(Self.name))
            guard try await call.sees(path) else { throw call.outside("a link of this stream", "name", "\(path)") }
            let url: LinkURL
            do throws(LinkError) {
                url = try LinkURL(parsing: text)
            } catch {
                throw APIError(FieldError("url", "", "\(error)"))
            }
            if let why = TargetRules(allowPrivate: call.core.config.outbound.allowPrivate).objection(to: url.host) {
                throw APIError(FieldError("url", "", "\(LinkError.forbidden(host: url.hostText, address: url.hostText, why: why))"))
            }
            if direction == .pull, path.app == TalkStreamName.app {
                throw APIError(FieldError("app", path.app, "is reserved for talk channels; expected another app for a pull"))
            }
            let links = call.services.all
            let known = links.map(\.link)
            // Compares parsed URLs, so that different spellings are equal.
            let same = links.filter { $0.url == url && $0.link.path == path }.map(\.link)
            if same.contains(where: { $0.direction == direction }) {
                throw APIError(.conflict, .conflict, "This link exists already.")
            }
            // A stream that went out and came back would be its own publisher.
            if same.contains(where: { $0.direction != direction }) {
                throw APIError(.conflict, .conflict, "A link in the other direction has the same two ends; the two would form a loop.")
            }
            if direction == .pull, known.contains(where: { $0.direction == .pull && $0.path == path }) {
                throw APIError(.conflict, .conflict, "\(path) is already pulled from another address.")
            }
            do {
                let onDemand = try call.value(Self.onDemand)
                call.audit(stream: path) { $0.link(direction, onDemand: onDemand, target: url.redacted, exists: true) }
                return try await keep({ LinkAnswer(new: $0, target: url) }) {
                    try await call.services.create(direction, path, url: text, onDemand: onDemand, keeping: $0)
                }
            } catch let error as LinkError {
                throw APIError(FieldError("url", "", "\(error)"))
            } catch let error as KeyFileError {
                call.logFailure("The address of a link could not be stored", error)
                throw APIError.unavailable("The link's address cannot be stored; the server's log has the reason.")
            }
        },
        Route<LinkTable>(
            .get, "/links/{linkId}", "getLink", .links, .ops, .thing, "Look a link up.", in: [Self.id],
            answers: LinkAnswer.outputType
        ) { call in
            let id = try call.value(Self.id)
            guard let running = call.services.find(id), try await call.sees(running.link.path) else {
                throw APIError.notFound("link", "\(id)", field: "linkId")
            }
            return LinkAnswer(running)
        },
        Route<LinkTable>(
            .delete, "/links/{linkId}", "deleteLink", .links, .admin, .thing, "End a link and delete it.", in: [Self.id],
            answers: .nothing
        ) { call in
            let id = try call.value(Self.id)
            if let running = call.services.find(id) {
                let link = running.link
                guard try await call.sees(link.path) else { throw APIError.notFound("link", "\(id)", field: "linkId") }
                call.audit(stream: link.path) {
                    $0.link(link.direction, onDemand: link.onDemand, target: running.url.redacted, exists: false)
                }
            }
            guard try await call.rooms.deleteLink(id) else { throw APIError.notFound("link", "\(id)", field: "linkId") }
            call.services.remove(id)
        },
    ]
}

extension AuditChange {
    /// Adds a link that is created (`exists`) or deleted. `target`: the form shown in logs.
    fileprivate mutating func link(_ direction: Link.Direction, onDemand: Bool, target: String, exists: Bool) {
        func add(_ name: String, _ value: JSONValue) {
            if exists { self.add(name, from: nil, to: value) } else { self.add(name, from: value, to: nil) }
        }
        add("direction", .string(direction.rawValue))
        if direction == .pull { add("onDemand", .bool(onDemand)) }
        add("target", .string(target))
    }
}

struct LinkListAnswer: Sendable {
    let list: [LinkAnswer]

    static let outputType = OutputType<LinkListAnswer>.object(
        "LinkList",
        [
            .field("total", .count, "The number of links.", \.list.count),
            .field("list", .list(LinkAnswer.outputType), "The links.", \.list),
        ])
}

struct LinkAnswer: Sendable {
    let link: Link
    let status: LinkStatus?
    /// The reason why a pull is held; nil when it is not.
    let held: String?
    let target: String

    /// The answer for a link that has not started.
    init(new link: Link, target: LinkURL) {
        self.link = link
        self.status = nil
        self.held = nil
        self.target = target.redacted
    }

    init(_ running: RunningLink) {
        self.link = running.link
        self.status = running.status
        self.held = running.heldFor
        self.target = running.url.redacted
    }

    static let outputType = OutputType<LinkAnswer>.object(
        "Link",
        [
            .field("linkId", .count, "The link's number.", \.link.id),
            .field(
                "direction", .choice(), "push: sends the stream to the other server; pull: fetches it from there.", \.link.direction),
            .field("app", .text, "The stream's app on this server.", \.link.path.app),
            .field("name", .text, "The stream's name on this server.", \.link.path.name),
            .field("target", .text, "The address on the other server, without the credential.", \.target),
            .field("onDemand", .flag, "For a pull: runs only while somebody plays the stream.", \.link.onDemand),
            .field("createdAt", .instant, "When the link was created.", \.link.createdAt),
            .field(
                "state", .words(["idle", "connecting", "running", "waiting", "held", "stopped", "failed"]),
                """
                waiting: the link waits for its next attempt. held: this server refuses the pulled stream; the pull is retried later. idle \
                and stopped: the link waits for a publisher or a viewer.
                """
            ) { $0.held == nil ? $0.status?.state.word ?? "idle" : "held" },
            .field("since", .nullable(.instant), "When the state began.") { $0.status?.sinceMs },
            .field("lastError", .nullable(.text), "Why the last connection ended, or why this server refuses the pulled stream.") {
                $0.held ?? $0.status?.lastError.map { "\($0)" }
            },
            .field("attempts", .count, "Attempts to connect.") { $0.status?.attempts ?? 0 },
            .field("bytesIn", .count, "Bytes received.") { $0.status?.bytesIn ?? 0 },
            .field("bytesOut", .count, "Bytes sent.") { $0.status?.bytesOut ?? 0 },
            .field("framesIn", .count, "Frames received.") { $0.status?.framesIn ?? 0 },
            .field("framesOut", .count, "Frames sent.") { $0.status?.framesOut ?? 0 },
            .field("framesDropped", .count, "Frames dropped because the other server was too slow.") {
                UInt64(($0.status?.droppedVideo ?? 0) + ($0.status?.droppedAudio ?? 0))
            },
        ])
}
