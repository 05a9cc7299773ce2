package import Access
import HTTPServer
package import Logging
package import RoomRegistry
package import Rooms
import Support

/// A checked call for its handler: the caller's token and every input value. A value. `Services`: what its group of calls works on.
package struct Call<Services: Sendable>: Sendable {
    package let services: Services
    package let core: APICore
    /// Nil for calls that need no token.
    package let token: APIToken?
    package let values: InputValues
    /// The client's `Host` header, for the URLs handed out.
    package let host: String?
    /// The room versions that the call accepts; nil for any.
    package let condition: RoomCondition?
    /// The call's Idempotency-Key; nil without one, and for calls without an effect.
    var keyed: KeyedCall?
    /// The request's id, as in its answer.
    let requestID: String?

    /// The same call for a handler with these services.
    func on<Others>(_ others: Others) -> Call<Others> {
        Call<Others>(
            services: others, core: self.core, token: self.token, values: self.values, host: self.host, condition: self.condition,
            keyed: self.keyed, requestID: self.requestID)
    }

    /// Logs why the call failed, where its answer cannot say it.
    package func logFailure(_ message: Logger.Message, _ error: any Error) {
        self.core.log.error(message, metadata: ["error": "\(error)", "request": "\(self.requestID ?? "none")"])
    }

    package var rooms: RoomRegistry { self.core.rooms }

    /// The registry's time: milliseconds since 1970.
    package var nowMs: Int64 { self.core.rooms.now }

    /// The caller's name in the audit trail.
    package var actor: Actor { Actor(self.token.map { "token:\($0.name)" } ?? "api") }

    /// The value, or its default; nil if the request has none and there is no default.
    package subscript<Value>(input: Input<Value>) -> Value? { self.values[input] }

    /// A value that the form requires, or that has a default.
    package func value<Value>(_ input: Input<Value>) throws -> Value {
        guard let value = self.values[input] else { throw APIError(FieldError(input.name, "", "is required")) }
        return value
    }

    /// The server's addresses for this caller. Throws 503 while the server starts.
    package func publicAddress() throws -> PublicAddress {
        guard let addresses = self.core.addresses() else { throw APIError.unavailable("The server is starting.") }
        return PublicAddress(config: self.core.config.current, addresses: addresses, requestHost: self.host)
    }

    /// The stream that the path names, by its own name or by its device's. Throws 404 for one that the token does not cover.
    package func stream() async throws -> StreamPath {
        guard let name = self.values.stream else { throw APIError(FieldError("name", "", "is required")) }
        let path = await self.rooms.stream(named: name)
        guard try await self.sees(path) else { throw APIError.notFound("stream", "\(name)", field: "name") }
        return path
    }

    /// Adds changed fields to the call's line in the audit trail. Changes of rooms need no call, since their transactions add the fields. Call it
    /// before the change, because a transaction stores the line with it. A call that fails shows no changed fields.
    package func audit(stream: StreamPath? = nil, room: RoomID? = nil, _ add: (inout AuditChange) -> Void) {
        AuditedCall.current?.update { line in
            if let stream { line.stream = "\(stream)" }
            var change = AuditChange()
            change.roomID = room
            add(&change)
            line = line.with(change)
        }
    }
}
