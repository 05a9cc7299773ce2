import Foundation
import Mutation

/// The mutants of one run, kept in the work folder between the steps of scripts/mutants.sh.
struct Plan: Codable {
    /// The number of mutants to run. More are drawn, because the compiler rejects some.
    let count: Int
    let drawn: [Mutant]
    /// The numbers of mutants that do not compile.
    var dropped: Set<Int> = []

    var compiled: [Mutant] { self.drawn.filter { !self.dropped.contains($0.id) } }
    var run: [Mutant] { Array(self.compiled.prefix(self.count)) }

    /// The percentage of additional mutants drawn.
    static let spare = 25

    static func read(_ work: WorkFolder) throws -> Plan { try JSONDecoder().decode(Plan.self, from: Data(contentsOf: work.plan)) }

    func write(_ work: WorkFolder) throws { try JSONEncoder().encode(self).write(to: work.plan, options: .atomic) }
}

/// The folder that holds the plan, the results and the copy.
struct WorkFolder {
    let root: URL

    var plan: URL { self.root.appending(path: "plan.json") }
    var results: URL { self.root.appending(path: "results.json") }
    /// The copy of the tree in which mutants can be switched on.
    var copy: URL { self.root.appending(path: "copy") }

    func readResults() throws -> [MutantResult] { try JSONDecoder().decode([MutantResult].self, from: Data(contentsOf: self.results)) }

    func write(_ results: [MutantResult]) throws { try JSONEncoder().encode(results).write(to: self.results, options: .atomic) }
}

/// An error that stops the run and is printed.
struct Failure: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}

/// Prints a line without buffering, also into a pipe.
func say(_ line: String) { FileHandle.standardOutput.write(Data((line + "\n").utf8)) }
