import Rooms
import Support

/// The form of a list.
enum ListFormat: String, Sendable, CaseIterable {
    case json, csv

    static let input = Input(
        "format", .choice() as InputType<ListFormat>, "csv: the list as comma-separated values (RFC 4180), without the rest of the answer.",
        fallback: .json)
}

extension Schema {
    /// The member names of the objects in this list, from the schema.
    func columns(of list: String) -> [String] {
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
