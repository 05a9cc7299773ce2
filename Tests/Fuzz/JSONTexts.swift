import Support

extension FuzzTarget {
    /// A request's body. What is read can be written and read again; nesting is bounded.
    static let json = FuzzTarget("json", maxLength: 2_048) { input in
        var input = input
        let deepest = 1 + Int(input.byte() % 40)
        let bytes = input.rest
        let value: JSONValue
        do throws(JSONProblem) {
            value = try JSONParser.parse(bytes, deepest: deepest)
        } catch {
            expect(error.line >= 1 && error.column >= 1 && error.column <= bytes.count + 1, "an error at \(error.line):\(error.column)")
            expect(error.line <= bytes.count { $0 == UInt8(ascii: "\n") } + 1, "an error behind the end")
            return
        }
        expect(depth(of: value) <= deepest, "\(depth(of: value)) levels, where \(deepest) are allowed")
        let text = value.text
        do throws(JSONProblem) {
            let again = try JSONParser.parse(text.utf8, deepest: deepest)
            expect(areSame(again, value), "written and read, another value: \(text)")
            expect(again.text == text, "written twice, another text: \(text)")
        } catch {
            fatalError("written and read: \(error) in \(text)")
        }
    }
}

private func depth(of value: JSONValue) -> Int {
    switch value {
    case .array(let values): 1 + (values.map(depth).max() ?? 0)
    case .object(let members): 1 + (members.map { depth(of: $0.value) }.max() ?? 0)
    default: 0
    }
}
