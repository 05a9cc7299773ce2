import HTTPAPI
import RoomRegistry
import Rooms
import Streaming

/// A node of the cluster, as this one sees it.
struct NodeAnswer: Sendable {
    let node: ClusterNode
    let isSelf: Bool

    static let outputType = OutputType<NodeAnswer>.object(
        "Node",
        [
            .field("name", .text, "Its name: the setting cluster.name, or its host's name.", \.node.name),
            .field("number", .count, "Its number in the database; stays with the name.", \.node.number),
            .field(
                "state", .choice(),
                """
                running: it has a lease. lost: its lease has ended, and its pushes are not ended yet. gone: it has left, or its pushes were \
                ended for it.
                """, \.node.state),
            .field("isSelf", .flag, "Whether it is the node that answers.", \.isSelf),
            .field(
                "isKeeper", .flag, "Whether it applies deadlines, clears up after lost nodes and sends webhooks for all.",
                \.node.isKeeper),
            .field("version", .text, "The version of its server.", \.node.version),
            .field("address", .nullable(.text), "Where other nodes reach its API; null if it named no address.", \.node.address),
            .field("startedAt", .instant, "When it registered last, by the database's clock.", \.node.startedAt),
            .field("leaseSeconds", .seconds, "What is left of its lease; renewed every few seconds. 0 when it has ended.", \.node.leaseMs),
            .field("pushes", .count, "Pushes that run there.", \.node.pushes),
        ])
}

struct NodeListAnswer: Sendable {
    let isShared: Bool
    let list: [NodeAnswer]

    static let outputType = OutputType<NodeListAnswer>.object(
        "NodeList",
        [
            .field(
                "isShared", .flag, "Whether the server shares its registry with others: database.url and cluster.key are set.",
                \.isShared),
            .field("total", .count, "The number of nodes.") { $0.list.count },
            .field(
                "list", .list(NodeAnswer.outputType),
                "All nodes by name, without those that are gone for a day; empty for a server that is alone.", \.list),
        ])
}

/// A drain that was begun or, at another node, asked for.
struct NodeDrainAnswer: Sendable {
    let node: String
    let request: DrainRequest
    let state: DrainState?

    static let outputType = OutputType<NodeDrainAnswer>.object(
        "NodeDrain",
        [
            .field("node", .text, "The node that ends.", \.node),
            .field("timeout", .nullable(.seconds), "The time limit asked for; null: the node's setting.", \.request.timeoutMs),
            .field("tcUrl", .nullable(.text), "Where clients are asked to connect again; null: the node's setting.", \.request.reconnectTo),
            .field("restart", .flag, "Whether the node starts again afterwards.", \.request.restarts),
            .field(
                "drain", .nullable(DrainState.outputType),
                "The drain, if the node is the one that answers. null: another node was asked, and begins within a moment.", \.state),
        ])
}
