import NIOCore
import Rooms
import Support

/// The form of a list.
enum ListFormat: String, Sendable, CaseIterable {
    case json, csv

    static let input = Input(
        "format", .choice() as InputType<ListFormat>, "csv: the list as comma-separated values (RFC 4180), without the rest of the answer.",
        fallback: .json)
}

extension APIRoute {
    /// A call whose answer has a `list`, which callers may also get as comma-separated values.
    init<Output>(
        table path: String, _ name: String, _ tag: APITag, _ role: TokenRole, _ summary: String, in pathForm: [AnyInput] = [],
        query: [AnyInput] = [], answers outputType: OutputType<Output>, failures: Set<APIFailure> = [],
        _ handle: @escaping @Sendable (APICall) async throws -> Output
    ) {
        let columns = outputType.schema.columns(of: "list")
        self.init(
            tablePath: path, name, tag, role, summary, pathForm, query + [ListFormat.input.erased], outputType.schema, failures
        ) { call in
            let data = outputType.write(try await handle(call))
            guard call[ListFormat.input] == .csv else { return .data(data) }
            guard case .array(let list)? = data["list"] else { return .raw(type: CSV.mediaType, ByteBuffer(bytes: CSV.text(columns, []))) }
            return .raw(type: CSV.mediaType, ByteBuffer(bytes: CSV.text(columns, list)))
        }
    }
}

extension Schema {
    /// The member names of the objects in this list, from the schema.
    fileprivate func columns(of list: String) -> [String] {
        guard case .list(let element)? = self.properties.first(where: { $0.name == list })?.schema else { return [] }
        return element.properties.map(\.name)
    }

    private var properties: [Property] {
        switch self {
        case .object(let properties): properties
        case .named(_, let schema): schema.properties
        default: []
        }
    }
}
