import HTTPAPI
import HTTPTypes
import Listening
import NIOCore
import Rooms
import Streaming
import Support
import Talkback

enum ServerRoutes {
    /// Calls about the server itself.
    static let all: [ControlRoute] = [
        ControlRoute(
            .get, "/counters", "getCounters", .server, .ops, .server, "Totals since the server started.", answers: ServerTotals.outputType
        ) {
            call in call.services.totals
        },
        ControlRoute(
            raw: .get, "/metrics", "getMetrics", .server, .ops, .server, "The counters for Prometheus; also at /metrics.",
            type: MetricsText.mediaType
        ) { call in
            ByteBuffer(bytes: try await Metrics.bytes(call.services))
        },
        ControlRoute(
            .get, "/selfcheck", "checkSelf", .server, .ops, .server, "Compare each counter with what it counts.",
            answers: SelfCheck.outputType
        ) { call in
            try await SelfCheck.run(call.services)
        },
        ControlRoute(
            raw: .get, "/openapi.json", "getOpenAPI", .server, nil, .anyone, "This document.", type: "application/json",
            schema: .keywords("object")
        ) { call in call.core.document() },
    ]
}
