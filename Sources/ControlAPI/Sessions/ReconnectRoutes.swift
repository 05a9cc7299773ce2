import HTTPAPI
import HTTPServer
import HTTPTypes
import Relay
import Rooms
import Streaming

enum ReconnectRoutes {
    private static let id = Input("sessionId", .whole(1...Int64.max), "The connection's number.").required
    private static let tcURL = Input(
        "tcUrl", .text(length: 1...1_024).example("rtmp://live.example.com/live"), "Where to connect. Not set: where the client did before."
    )

    /// Asking clients of Enhanced RTMP to connect again, here or elsewhere.
    static let all: [ControlRoute] = [
        ControlRoute(
            .post, "/sessions/{sessionId}/reconnect", "reconnectSession", .sessions, .ops, .thing,
            "Ask a client to connect again. Only clients of Enhanced RTMP that have said that they can (capsEx 1) can be asked.",
            in: [Self.id], body: [Self.tcURL], answers: ReconnectOutcome.outputType, failures: [.conflict], home: .session
        ) { call in
            let id = UInt64(clamping: try call.value(Self.id))
            if call.scope.isLimited {
                let session = await call.services.control.session(id)
                guard let session, try await call.seesAll(session.publishing + session.viewers.map(\.path)) else {
                    throw APIError.notFound("session", "\(id)", field: "sessionId")
                }
            }
            guard let outcome = await call.services.control.askToReconnect(id, to: try call.reconnectURL(Self.tcURL)) else {
                throw APIError.notFound("session", "\(id)", field: "sessionId")
            }
            guard outcome.asked > 0 else {
                var error = APIError(
                    .conflict, .conflict,
                    "The client of session \(id) cannot be asked to connect again: it has not said that it can (Enhanced RTMP, capsEx 1)."
                        + " End the session, and it may come back by itself.")
                error.rule = "expected a client that announced Enhanced RTMP's reconnect capability"
                throw error
            }
            return outcome
        },
        ControlRoute(
            .post, "/streams/{app}/{name}/reconnect", "reconnectViewers", .streams, .ops, .stream,
            "Ask all viewers of a stream to connect again. Those that cannot be asked are counted and play on.",
            in: StreamInputs.path, body: [Self.tcURL], answers: ReconnectOutcome.outputType, home: .stream
        ) { call in
            let path = try await call.stream()
            return await call.services.control.askViewersToReconnect(of: path.description, to: try call.reconnectURL(Self.tcURL))
        },
    ]
}

extension ReconnectOutcome {
    static let outputType = OutputType<ReconnectOutcome>.object(
        "Reconnect",
        [
            .field("asked", .count, "Clients that were asked.", \.asked),
            .field("unable", .count, "Clients that have not said that they can connect again.", \.unable),
        ])
}
