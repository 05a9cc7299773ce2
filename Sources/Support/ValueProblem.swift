/// The reason why one value was refused: text that completes the line `path: …`.
package struct ValueProblem: Error, Equatable, CustomStringConvertible {
    package let description: String
    package init(_ description: String) { self.description = description }
}
