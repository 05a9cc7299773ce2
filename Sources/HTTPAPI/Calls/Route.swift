package import HTTPServer
package import HTTPTypes
package import NIOCore
package import Rooms
import Support

/// One call with its handler, which works on `Services`. A single declaration serves, checks and documents it.
package struct Route<Services: Sendable>: Sendable {
    package let route: APIRoute
    let handle: @Sendable (Call<Services>) async throws -> APIReply

    /// The route of a server that has these services.
    package func served(by services: Services) -> ServedRoute {
        ServedRoute(route: self.route) { [handle] in try await handle($0.on(services)) }
    }

    /// A call whose answer is JSON in the envelope.
    package init<Output>(
        _ method: HTTPRequest.Method, _ path: String, _ name: String, _ tag: APITag, _ role: TokenRole, _ reach: TokenReach,
        _ summary: String, in pathForm: [any RequestInput] = [], query: [any RequestInput] = [], body: [any RequestInput]? = nil,
        answers outputType: OutputType<Output>, status: HTTPResponse.Status = .ok, location: (path: String, member: String)? = nil,
        failures: Set<APIFailure> = [], secret: String? = nil, effect: APIEffect? = nil, home: RouteHome? = nil, isAudited: Bool? = nil,
        isConditional: Bool = false, _ handle: @escaping @Sendable (Call<Services>) async throws -> Output
    ) {
        self.route = APIRoute(
            method, path, name, tag, role, reach, summary, pathForm, query,
            // Every POST may have a body, even if only an empty object.
            body: body.map(Form.init) ?? (method == .post ? .empty : nil),
            APISuccess(
                status: status, content: [("application/json", APIRoute.envelope(outputType.schema))], location: location, secret: secret),
            failures, effect ?? (method == .post ? .live : .nothing), home, isAudited, isConditional: isConditional,
            isVersioned: outputType.schema.hasProperty("version"))
        self.handle = { .data(outputType.write(try await handle($0))) }
    }

    /// A POST whose effect is in the store. Its handler stores the answer there too.
    package init<Output: Sendable>(
        storing path: String, _ name: String, _ tag: APITag, _ role: TokenRole, _ reach: TokenReach, _ summary: String,
        in pathForm: [any RequestInput] = [], body: [any RequestInput] = [], answers outputType: OutputType<Output>,
        status: HTTPResponse.Status = .ok, location: (path: String, member: String)? = nil, failures: Set<APIFailure> = [],
        secret: String? = nil, home: RouteHome? = nil, isAudited: Bool? = nil, isConditional: Bool = false,
        _ handle: @escaping @Sendable (Call<Services>, AnswerKeeper<Output>) async throws -> Output
    ) {
        self.init(
            .post, path, name, tag, role, reach, summary, in: pathForm, body: body, answers: outputType, status: status,
            location: location, failures: failures, secret: secret, effect: .stored, home: home, isAudited: isAudited,
            isConditional: isConditional
        ) { call in
            try await handle(call, AnswerKeeper(keyed: call.keyed, outputType: outputType))
        }
    }

    /// A call whose answer is not JSON in the envelope.
    package init(
        raw method: HTTPRequest.Method, _ path: String, _ name: String, _ tag: APITag, _ role: TokenRole?, _ reach: TokenReach,
        _ summary: String, in pathForm: [any RequestInput] = [], query: [any RequestInput] = [], type: String, schema: Schema? = nil,
        failures: Set<APIFailure> = [], home: RouteHome? = nil, isAudited: Bool? = nil,
        _ handle: @escaping @Sendable (Call<Services>) async throws -> ByteBuffer
    ) {
        self.route = APIRoute(
            method, path, name, tag, role, reach, summary, pathForm, query, APISuccess(status: .ok, content: [(type, schema)]), failures,
            .nothing, home, isAudited)
        self.handle = { .raw(type: type, try await handle($0)) }
    }

    /// A call whose answer is a file, which a signed link opens too.
    package init(
        file path: String, _ name: String, _ tag: APITag, _ role: TokenRole, _ reach: TokenReach, _ summary: String,
        in pathForm: [any RequestInput], type: String, failures: Set<APIFailure> = [], home: RouteHome? = nil,
        _ handle: @escaping @Sendable (Call<Services>) async throws -> FileDownload
    ) {
        self.route = APIRoute(
            .get, path, name, tag, role, reach, summary, pathForm, SignedLink.inputs, APISuccess(status: .ok, content: [(type, nil)]),
            failures.union([.noSuchRange]), .nothing, home, isDownload: true)
        self.handle = { .file(try await handle($0)) }
    }

    /// A call whose answer has a `list`, which callers may also get as comma-separated values.
    package init<Output>(
        table path: String, _ name: String, _ tag: APITag, _ role: TokenRole, _ reach: TokenReach, _ summary: String,
        in pathForm: [any RequestInput] = [], query: [any RequestInput] = [], answers outputType: OutputType<Output>,
        failures: Set<APIFailure> = [],
        home: RouteHome? = nil, _ handle: @escaping @Sendable (Call<Services>) async throws -> Output
    ) {
        let schema = outputType.schema
        let columns = schema.columns(of: "list")
        self.route = APIRoute(
            .get, path, name, tag, role, reach, summary, pathForm, query + [ListFormat.input],
            APISuccess(status: .ok, content: [("application/json", APIRoute.envelope(schema)), (CSV.mediaType, nil)]), failures, .nothing,
            home)
        self.handle = { call in
            let data = outputType.write(try await handle(call))
            guard call[ListFormat.input] == .csv else { return .data(data) }
            guard case .array(let list)? = data["list"] else { return .raw(type: CSV.mediaType, ByteBuffer(bytes: CSV.text(columns, []))) }
            return .raw(type: CSV.mediaType, ByteBuffer(bytes: CSV.text(columns, list)))
        }
    }
}

/// A route with its handler and the services that this works on.
package struct ServedRoute: Sendable {
    let route: APIRoute
    let handle: @Sendable (Call<Void>) async throws -> APIReply
}
