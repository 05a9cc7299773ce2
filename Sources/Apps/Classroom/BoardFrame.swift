package import Support

/// A frame of a whiteboard's page: `{"type":"draw","ref":7,"page":0,"stroke":{…}}`. A value.
///
/// `ref` is the client's own: the answer to the frame (`ack` or `error`) repeats it.
package struct BoardFrame: Sendable, Equatable {
    package enum Body: Sendable, Equatable {
        case draw(page: Int64, BoardStroke)
        /// Removes all strokes of a page.
        case clear(page: Int64)
        case ping
    }

    package let ref: JSONValue?
    package let body: Body

    package static func read(_ text: String) throws(ChannelFrame.Problem) -> BoardFrame {
        let (value, ref) = try ChannelFrame.open(text)
        do throws(FieldError) {
            return BoardFrame(ref: ref, body: try self.body(value))
        } catch {
            throw ChannelFrame.Problem(ref: ref, error: error)
        }
    }

    private static func body(_ value: JSONValue) throws(FieldError) -> Body {
        switch value["type"] {
        case .string("draw")?:
            guard let stroke = value["stroke"] else { throw FieldError("stroke", "", "is required") }
            return .draw(page: try self.page(value), try BoardStroke(stroke))
        case .string("clear")?: return .clear(page: try self.page(value))
        case .string("ping")?: return .ping
        default: throw FieldError("type", value["type"]?.shown ?? "", "expected draw, clear or ping")
        }
    }

    private static func page(_ value: JSONValue) throws(FieldError) -> Int64 {
        guard case .integer(let page)? = value["page"], BoardLimits.pages.contains(page) else {
            throw FieldError(
                "page", value["page"]?.shown ?? "",
                "expected a whole number from \(BoardLimits.pages.lowerBound) to \(BoardLimits.pages.upperBound)")
        }
        return page
    }
}

/// Writes a whiteboard's frames to its pages, as text. Pure.
///
/// | type | members |
/// |---|---|
/// | `hello` | `you`: `id`, `role`, `mayDraw`; `page`: the one that the class sees; `strokes`: `[{page, stroke}]`, `more` |
/// | `strokes` | `strokes`, `more`: whether further earlier strokes follow |
/// | `draw` | `from`, `page`, `stroke` |
/// | `clear` | `from`, `page` |
/// | `page` | `page`: the class has turned to it |
/// | `you` | `you`: the member's role has changed |
/// | `closed` | `reason`: `deleted`, `ended`, `left`, `replaced` |
/// | `ack`, `error`, `pong` | as in ``ChannelWriter`` |
package enum BoardWriter {
    /// A stroke as the store keeps it.
    package typealias Drawn = (page: Int64, stroke: String)

    package static func hello(_ id: String, _ role: ClassroomRole, page: Int64, _ strokes: [Drawn], more: Bool) -> String {
        #"{"type":"hello","you":\#(self.you(id, role).text),"page":\#(page),\#(self.list(strokes, more: more))}"#
    }

    package static func strokes(_ strokes: [Drawn], more: Bool) -> String { #"{"type":"strokes",\#(self.list(strokes, more: more))}"# }

    /// The strokes are JSON already.
    private static func list(_ strokes: [Drawn], more: Bool) -> String {
        let list = strokes.map { #"{"page":\#($0.page),"stroke":\#($0.stroke)}"# }.joined(separator: ",")
        return #""strokes":[\#(list)],"more":\#(more)"#
    }

    package static func draw(from id: String, page: Int64, stroke: String) -> String {
        #"{"type":"draw","from":\#(JSONValue.string(id).text),"page":\#(page),"stroke":\#(stroke)}"#
    }

    package static func clear(from id: String, page: Int64) -> String {
        (["type": "clear", "from": .string(id), "page": .integer(page)] as JSONValue).text
    }

    package static func page(_ page: Int64) -> String { (["type": "page", "page": .integer(page)] as JSONValue).text }

    package static func role(_ id: String, _ role: ClassroomRole) -> String {
        (["type": "you", "you": self.you(id, role)] as JSONValue).text
    }

    package static func closed(_ reason: String) -> String { (["type": "closed", "reason": .string(reason)] as JSONValue).text }

    private static func you(_ id: String, _ role: ClassroomRole) -> JSONValue {
        ["id": .string(id), "role": .string(role.rawValue), "mayDraw": .bool(role.mayDraw)]
    }
}
