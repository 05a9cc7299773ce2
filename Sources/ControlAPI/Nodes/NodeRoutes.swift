import HTTPAPI
import HTTPServer
import HTTPTypes
import Logging
import RoomRegistry
import Rooms
import ServerConfiguration
import Streaming

enum NodeRoutes {
    private static let node = Input("node", .sought(length: 1...NodeName.longest), "The node's name.").required

    /// Calls about the servers that share a registry.
    static let all: [ControlRoute] = [
        ControlRoute(
            .get, "/nodes", "listNodes", .server, .ops, .server, "List the servers that share this one's registry, and those that did.",
            answers: NodeListAnswer.outputType
        ) { call in
            let own = call.rooms.nodeNumber
            return NodeListAnswer(
                isShared: call.rooms.isShared, list: try await call.rooms.nodes().map { NodeAnswer(node: $0, isSelf: $0.number == own) })
        },
        ControlRoute(
            .post, "/nodes/{node}/drain", "drainNode", .server, .admin, .server,
            """
            End a node when its pushes have ended, as drainServer does with the server that is called. Another node is asked through the \
            registry and begins within a moment; whether it could is in its log and in the audit trail, with the same requestId.
            """,
            in: [Self.node], body: OperationRoutes.drainInputs, answers: NodeDrainAnswer.outputType, status: .accepted,
            failures: [.conflict]
        ) { call in
            let (name, request) = (try call.value(Self.node), try call.drainRequest())
            if name == call.rooms.nodeName { return NodeDrainAnswer(node: name, request: request, state: try await call.drain(request)) }
            let node = try await Self.running(name, call)
            call.audit { $0.drain(request) }
            try await call.rooms.order(
                DrainOrder(
                    node: node.number, timeoutMs: request.timeoutMs, reconnectTo: request.reconnectTo, restarts: request.restarts,
                    askedAt: call.nowMs, by: Actor("\(call.actor.name) at node \(call.rooms.nodeName ?? "-")"),
                    call: AuditedCall.current?.due ?? AuditLine("")))
            return NodeDrainAnswer(node: name, request: request, state: nil)
        },
    ]

    /// Throws 404 for a name that no node has, 409 for a node that does not run.
    private static func running(_ name: String, _ call: APICall) async throws -> ClusterNode {
        let nodes = try await call.rooms.nodes()
        guard let node = nodes.first(where: { $0.name == name }) else {
            let running = nodes.filter { $0.state == .running }.map(\.name)
            var error = APIError(
                .notFound, .notFound,
                "There is no node \"\(name)\"; "
                    + (running.isEmpty
                        ? "this server shares its registry with no other." : "running are: \(running.joined(separator: ", "))."))
            error.field = "node"
            error.value = String(name.prefix(80))
            throw error
        }
        guard node.state == .running else {
            throw APIError.wrongState("Node \(name) is \(node.state.rawValue).", state: node.state.rawValue, allowed: ["running"])
        }
        return node
    }
}

extension APIServices {
    /// How long another node's wish holds.
    private static let drainMs: Int64 = 60_000

    /// Begins the drains that other nodes have asked of this one. On the registry's queue; does not block.
    func handle(_ outcomes: [RoomOutcome]) {
        let since = self.rooms.now - Self.drainMs
        for case .drainAsked(let order) in outcomes where order.node == self.rooms.nodeNumber && order.askedAt > since {
            Task { await self.run(order) }
        }
    }

    private func run(_ order: DrainOrder) async {
        guard let operations = self.operations else { return }
        let request = DrainRequest(timeoutMs: order.timeoutMs, reconnectTo: order.reconnectTo, restarts: order.restarts)
        var line = order.call
        line.object = self.rooms.nodeName.map { "node/\($0)" }
        var change = AuditChange()
        switch await operations.drain(request, by: order.by.name) {
        case .begun: change.drain(request)
        case .cannotRestart: line.result = APIError.Kind.conflict.rawValue
        case .alreadyUnderWay:
            line.result = APIError.Kind.wrongState.rawValue
            self.log.info("Draining already; another node's wish is left out", metadata: ["by": "\(order.by.name)"])
        }
        // No request came here.
        line.status = 0
        self.rooms.ended(AuditedCall(line.with(change)))
    }
}
