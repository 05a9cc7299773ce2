package import Support

/// The bounds of a whiteboard's drawing. A value.
package struct BoardLimits: Sendable, Equatable {
    /// Bytes of all strokes of a board, as the store keeps them.
    package var bytes = 1 << 20
    /// Bytes of strokes in one frame to a client.
    package var pieceBytes = 48 << 10

    package init() {}

    /// Where a point may be, in ten-thousandths of the sheet's width or height.
    package static let coordinates: ClosedRange<Int64> = 0...10_000
    /// Points of a stroke. With more it would not fit into a frame to a client.
    package static let points = 2...2_000
    /// In thousandths of the sheet's width.
    package static let widths: ClosedRange<Int64> = 1...50
    static let pages = Int64(ClassroomLimits.pages.lowerBound)...Int64(ClassroomLimits.pages.upperBound)
}

/// A line that somebody drew: `{"points":[[x,y],…],"color":"#rrggbb","width":3}`. A value.
package struct BoardStroke: Sendable, Equatable {
    package struct Point: Sendable, Equatable {
        package let x: Int64
        package let y: Int64
    }

    package let points: [Point]
    /// `#` and six hexadecimal digits, in lower case.
    package let color: String
    package let width: Int64

    /// Throws an error that names the field that is missing or outside ``BoardLimits``.
    package init(_ value: JSONValue) throws(FieldError) {
        guard case .object = value else { throw FieldError("stroke", "", "expected an object, not \(value.kind)") }
        guard case .array(let points)? = value["points"], BoardLimits.points.contains(points.count) else {
            throw FieldError(
                "stroke.points", "", "expected an array of \(BoardLimits.points.lowerBound) to \(BoardLimits.points.upperBound) points")
        }
        var read: [Point] = []
        read.reserveCapacity(points.count)
        for point in points {
            guard case .array(let pair) = point, pair.count == 2, case .integer(let x) = pair[0], case .integer(let y) = pair[1],
                BoardLimits.coordinates.contains(x), BoardLimits.coordinates.contains(y)
            else {
                throw FieldError(
                    "stroke.points", point.shown, "expected [x, y], whole numbers from 0 to \(BoardLimits.coordinates.upperBound)")
            }
            read.append(Point(x: x, y: y))
        }
        guard case .string(let color)? = value["color"], Self.isColor(color) else {
            throw FieldError("stroke.color", value["color"]?.shown ?? "", "expected # and six hexadecimal digits")
        }
        guard case .integer(let width)? = value["width"], BoardLimits.widths.contains(width) else {
            throw FieldError(
                "stroke.width", value["width"]?.shown ?? "",
                "expected a whole number from \(BoardLimits.widths.lowerBound) to \(BoardLimits.widths.upperBound)")
        }
        self.points = read
        self.color = color.lowercased()
        self.width = width
    }

    private static func isColor(_ text: String) -> Bool {
        let bytes = Array(text.utf8)
        return bytes.count == 7 && bytes[0] == UInt8(ascii: "#")
            && bytes.dropFirst().allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "f"), UInt8(ascii: "A")...UInt8(ascii: "F"):
                    true
                default: false
                }
            }
    }

    /// The same stroke always gives the same text, in ASCII.
    package var value: JSONValue {
        [
            "points": .array(self.points.map { .array([.integer($0.x), .integer($0.y)]) }), "color": .string(self.color),
            "width": .integer(self.width),
        ]
    }
}

/// How much is drawn on each page of a whiteboard, and the number of its newest stroke. The strokes themselves are in the store. A value.
package struct BoardSheet: Sendable, Equatable {
    package let limits: BoardLimits
    /// Bytes of strokes by page; pages without strokes are absent.
    package private(set) var pages: [Int64: Int]
    /// Strokes are numbered from 1 in the order in which they were drawn, on all pages together.
    package private(set) var last: Int64

    package init(limits: BoardLimits = BoardLimits(), pages: [Int64: Int] = [:], last: Int64 = 0) {
        self.limits = limits
        self.pages = pages.filter { $0.value > 0 }
        self.last = last
    }

    /// Bytes of all strokes.
    package var bytes: Int { self.pages.values.reduce(0, +) }

    /// The refusal's code when the board's bytes are used up.
    package static let full = "board_full"

    /// Adds a stroke of this size and returns its number. Throws ``full`` when it does not fit.
    package mutating func draw(_ page: Int64, bytes: Int) throws(GatheringRefusal) -> Int64 {
        guard self.bytes + bytes <= self.limits.bytes else {
            throw .dialect(
                code: Self.full,
                message: "The board is full: it takes \(self.limits.bytes >> 10) KiB of strokes. Clear a page to go on.")
        }
        self.pages[page, default: 0] += bytes
        self.last += 1
        return self.last
    }

    /// Removes the strokes of a page, which frees their bytes. Numbers are not used again.
    package mutating func clear(_ page: Int64) { self.pages[page] = nil }
}

extension Classroom.Board {
    /// The 32 hexadecimal digits in the URL of a board that this server keeps, `…/board/<digits>?…`. Nil for a board of another server.
    package var key: String? { Self.key(of: self.id) }

    package static func key(of url: String) -> String? {
        guard let path = url.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false).first else { return Optional.none }
        let parts = path.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count >= 2, parts[parts.count - 2] == "board", let key = parts.last, Self.isKey(key) else { return Optional.none }
        return String(key)
    }

    package static func isKey(_ text: some StringProtocol) -> Bool {
        text.utf8.count == 32
            && text.utf8.allSatisfy {
                (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains($0)
            }
    }
}

extension Classroom {
    /// The board with this key; nil for boards that another server keeps.
    package func board(key: String) -> Board? { self.boards.first { $0.key == key && $0.service == nil } }
}

extension ClassroomRole {
    /// Whether members in this role may draw on whiteboards.
    package var mayDraw: Bool { self == .assistant || self == .teacher }
}
