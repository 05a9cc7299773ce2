import Logging
import Delivery
import HTTPServer
import RoomRegistry
import Rooms
import Support

/// A checked call for its handler: the caller's token and every input value. A value.
struct APICall: Sendable {
    let services: APIServices
    /// Nil for calls that need no token.
    let token: APIToken?
    let values: InputValues
    /// The client's `Host` header, for the URLs handed out.
    let host: String?
    /// The room versions that the call accepts; nil for any.
    let condition: RoomCondition?
    /// The call's Idempotency-Key; nil without one, and for calls without an effect.
    private(set) var keyed: KeyedCall?

    /// The request's id, as in its answer.
    private let requestID: String?

    init(
        services: APIServices, token: APIToken?, values: InputValues, host: String?, condition: RoomCondition? = nil,
        requestID: String? = nil
    ) {
        self.services = services
        self.token = token
        self.values = values
        self.host = host
        self.condition = condition
        self.requestID = requestID
    }

    /// Logs why the call failed, where its answer cannot say it.
    func logFailure(_ message: Logger.Message, _ error: any Error) {
        self.services.log.error(message, metadata: ["error": "\(error)", "request": "\(self.requestID ?? "none")"])
    }

    /// The same call with its key.
    func with(_ keyed: KeyedCall) -> APICall {
        var call = self
        call.keyed = keyed
        return call
    }

    var rooms: RoomRegistry { self.services.rooms }

    /// The registry's time: milliseconds since 1970.
    var nowMs: Int64 { self.services.rooms.now }

    /// The caller's name in the audit trail.
    var actor: Actor { Actor(self.token.map { "token:\($0.name)" } ?? "api") }

    /// The value, or its default; nil if the request has none and there is no default.
    subscript<Value>(input: Input<Value>) -> Value? { self.values[input] }

    /// A value that the form requires, or that has a default.
    func value<Value>(_ input: Input<Value>) throws -> Value {
        guard let value = self.values[input] else { throw APIError(FieldError(input.name, "", "is required")) }
        return value
    }
}
