import HTTPTypes
import Hummingbird
import Logging
import NIOCore

/// A request's context: where it comes from and its id.
struct APIContext: RequestContext, RemoteAddressRequestContext {
    var coreContext: CoreRequestContextStorage
    let remoteAddress: SocketAddress?

    init(source: ApplicationRequestContextSource) {
        self.coreContext = .init(source: source)
        self.remoteAddress = source.channel.remoteAddress
    }
}

/// The body of every API answer. `code` is 0 for success and the HTTP status otherwise.
struct Envelope<Value: Encodable & Sendable>: ResponseEncodable, Sendable {
    let code: Int
    let message: String
    let requestId: String
    let data: Value?

    init(_ data: Value, _ context: APIContext) {
        self.code = 0
        self.message = ""
        self.requestId = context.id
        self.data = data
    }
}

/// An API error: status, and a message that names what was wrong and what was expected.
struct APIError: HTTPResponseError {
    let status: HTTPResponse.Status
    let message: String

    private struct Body: Encodable {
        let code: Int
        let message: String
        let requestId: String
    }

    func response(from request: Request, context: some RequestContext) throws -> Response {
        let body = Body(code: self.status.code, message: self.message, requestId: context.id)
        var response = try context.responseEncoder.encode(body, from: request, context: context)
        response.status = self.status
        return response
    }
}

/// Errors as the API's own bodies, whatever the path.
struct APIErrors: RouterMiddleware {
    func handle(_ request: Request, context: APIContext, next: (Request, APIContext) async throws -> Response) async throws -> Response {
        let error: APIError
        do {
            return try await next(request, context)
        } catch let known as APIError {
            error = known
        } catch let http as HTTPError {
            let what = http.status == .notFound ? "No \(request.method) \(request.uri.path) here." : http.body ?? "\(http.status)"
            error = APIError(status: http.status, message: what)
        }
        return try error.response(from: request, context: context)
    }
}

/// Nobody from outside the allowed networks.
struct APIGate: RouterMiddleware {
    let allowed: [CIDR]

    func handle(_ request: Request, context: APIContext, next: (Request, APIContext) async throws -> Response) async throws -> Response {
        guard let address = context.remoteAddress, self.allowed.contains(address: address) else {
            throw APIError(
                status: .forbidden,
                message: "The API does not answer this address; the server's setting access.apiFrom says which ones it does.")
        }
        return try await next(request, context)
    }
}
