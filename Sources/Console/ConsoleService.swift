import ControlAPI
package import HTTPServer
import HTTPTypes
package import Hummingbird
import NIOCore
package import Support

/// Serves the console: its page at `/`, its files under `/console/`, and login and logout. The data on the page comes from the API. Any thread.
///
/// | path | |
/// |---|---|
/// | `GET /`, `GET /console/FILE` | the page and its files; the same for everybody |
/// | `GET /console/session` | the login: role, name, whether it is limited to some apps or rooms, the secret for `X-Csrf-Token`, the RTMP address; 401 without one |
/// | `POST /console/session` | prolongs the login when half of its time has passed, for a week at most |
/// | `POST /console/login` | `{"token": …}` or `{"code": …}` sets the cookie |
/// | `POST /console/logout` | deletes the cookie |
/// | `POST /console/code` | with a token in the Authorization header: a one-time code for a browser on this machine |
package final class ConsoleService: HTTPPart {
    private let login: ConsoleLogin

    package init(login: ConsoleLogin) { self.login = login }

    package func door(_ request: Request) -> Door? {
        let path = request.uri.path
        return path == "/" || path == "/console" || path.hasPrefix("/console/") ? .console : nil
    }

    package func respond(to request: Request, _ context: APIContext) async -> Response {
        do throws(APIError) {
            try self.login.sessions.checkHost(request.head)
            return try await self.answer(request.uri.path, request, context)
        } catch {
            let answer = APIAnswer(error, requestID: context.id)
            return answer.response(to: request)
        }
    }

    private func answer(_ path: String, _ request: Request, _ context: APIContext) async throws(APIError) -> Response {
        switch path {
        case "/console/session":
            try Self.expect([.get, .post], request, path)
            return try await request.method == .post ? self.login.prolong(request, context) : self.login.current(request, context)
        case "/console/login":
            try Self.expect([.post], request, path)
            return try await self.login.logIn(request, context)
        case "/console/logout":
            try Self.expect([.post], request, path)
            return try await self.login.logOut(request, context)
        case "/console/code":
            try Self.expect([.post], request, path)
            return try await self.login.code(request, context)
        default:
            try Self.expect([.get, .head], request, path)
            return try Self.file(path == "/console" || path == "/console/" ? "/" : path, request)
        }
    }

    private static func expect(_ methods: [HTTPRequest.Method], _ request: Request, _ path: String) throws(APIError) {
        guard !methods.contains(request.method) else { return }
        let allowed = methods.map(\.rawValue)
        var error = APIError(
            .methodNotAllowed, .methodNotAllowed,
            "\(path.prefix(200)) does not support \(request.method); it supports \(allowed.joined(separator: ", ")).")
        error.allowed = allowed
        error.headers[.allow] = allowed.joined(separator: ", ")
        throw error
    }

    private static func file(_ path: String, _ request: Request) throws(APIError) -> Response {
        guard let file = ConsoleAsset.all[path] else { throw APIError.notFound("page", path) }
        return file.response(to: request, ConsoleHeaders.fenced([:]))
    }
}
