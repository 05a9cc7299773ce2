import Delivery
import HTTPTypes
import Listening
import NIOCore
import Rooms
import Support
import Talkback

extension APIRoute {
    /// Calls about the server itself.
    package static let server: [APIRoute] = [
        APIRoute(.get, "/counters", "getCounters", .server, .ops, "Totals since the server started.", answers: ServerTotals.outputType) {
            call in call.services.totals
        },
        APIRoute(
            raw: .get, "/metrics", "getMetrics", .server, .ops, "The counters for Prometheus; also at /metrics.", type: Metrics.mediaType
        ) { call in
            ByteBuffer(bytes: try await Metrics.bytes(call.services))
        },
        APIRoute(
            .get, "/selfcheck", "checkSelf", .server, .ops, "Compare each counter with what it counts.", answers: SelfCheck.outputType
        ) { call in
            try await SelfCheck.run(call.services)
        },
        APIRoute(
            raw: .get, "/openapi.json", "getOpenAPI", .server, nil, "This document.", type: "application/json", schema: .keywords("object")
        ) { _ in OpenAPIDocument.buffer },
    ]
}
