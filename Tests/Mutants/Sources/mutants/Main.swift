import Foundation
import Mutation

/// The steps of scripts/mutants.sh.
@main
enum Main {
    private static let usage = """
        usage: mutants draw CLONE WORK COUNT SEED FILES   draws mutants and writes the copy in which they can be switched on
               mutants refresh CLONE WORK                 writes the copy of the last draw once more, with the clone's tests of now
               mutants drop CLONE WORK BUILDLOG           takes out of the copy what the log says does not compile
               mutants run CLONE WORK TESTBINARY          runs the tests once for each mutant
               mutants again CLONE WORK TESTBINARY        the same for those that survived the last run
        """

    static func main() async {
        do {
            try await Self.run(Array(CommandLine.arguments.dropFirst()))
        } catch {
            FileHandle.standardError.write(Data("mutants: \(error)\n".utf8))
            exit(1)
        }
    }

    private static func run(_ arguments: [String]) async throws {
        guard arguments.count >= 3 else { throw Failure(Self.usage) }
        let tree = SourceTree(root: URL(filePath: arguments[1]))
        let work = WorkFolder(root: URL(filePath: arguments[2]))
        switch (arguments[0], arguments.count) {
        case ("draw", 6): try Self.draw(tree, work, count: arguments[3], seed: arguments[4], files: arguments[5])
        case ("refresh", 3): try tree.copy(to: work, with: Plan.read(work))
        case ("drop", 4): try Self.drop(tree, work, log: arguments[3])
        case ("run", 4): try await Self.run(tree, work, binary: arguments[3], again: false)
        case ("again", 4): try await Self.run(tree, work, binary: arguments[3], again: true)
        default: throw Failure(Self.usage)
        }
    }

    private static func draw(_ tree: SourceTree, _ work: WorkFolder, count: String, seed: String, files: String) throws {
        guard let count = Int(count), count > 0, count <= 10_000 else { throw Failure("COUNT is \(count), expected 1 to 10000") }
        guard let seed = UInt64(seed) else { throw Failure("SEED is \(seed), expected a number from 0 on") }
        guard let expression = try? Regex(files) else { throw Failure("FILES is \(files), expected a regular expression") }
        _ = try tree.explained()
        let candidates = try tree.mutants(in: expression)
        guard !candidates.isEmpty else { throw Failure("no file of the pure floors is found by \(files)") }
        let plan = Plan(count: count, drawn: Mutation.draw(count + count * Plan.spare / 100, from: candidates, seed: seed))
        let kinds = Mutant.Kind.allCases.map { kind in "\(candidates.count { $0.kind == kind }) \(kind.rawValue)" }
        say("\(candidates.count) mutants are possible: \(kinds.joined(separator: ", ")); \(min(count, plan.drawn.count)) are drawn")
        try plan.write(work)
        try tree.copy(to: work, with: plan)
    }

    private static func drop(_ tree: SourceTree, _ work: WorkFolder, log: String) throws {
        var plan = try Plan.read(work)
        let errors = BuildLog.errors(in: try String(contentsOf: URL(filePath: log), encoding: .utf8))
        let root = work.copy.resolvingSymlinksInPath().path + "/"
        var dropped: Set<Int> = []
        for position in errors {
            let path = URL(filePath: position.path).resolvingSymlinksInPath().path
            guard path.hasPrefix(root) else { continue }
            let file = String(path.dropFirst(root.count))
            let mutants = plan.compiled.filter { $0.file == file }
            guard !mutants.isEmpty else { continue }
            dropped.formUnion(try tree.rewrite(file, with: mutants).suspects(line: position.line))
        }
        guard !dropped.isEmpty else { throw Failure("the build fails, and not because of a mutant") }
        plan.dropped.formUnion(dropped)
        say("\(dropped.count) mutants do not compile and are taken out, \(plan.compiled.count) are left")
        try plan.write(work)
        try tree.copy(to: work, with: plan)
    }

    private static func run(_ tree: SourceTree, _ work: WorkFolder, binary: String, again: Bool) async throws {
        let explained = try tree.explained()
        let earlier = again ? try work.readResults().filter { $0.verdict != .survived } : []
        let known = Set(earlier.map(\.mutant.id))
        let mutants = try Plan.read(work).run.filter { !known.contains($0.id) }
        let run = MutantRun(binary: TestBinary(path: binary, work: work), work: work)
        let report = Report(results: try await run.results(of: mutants, earlier: earlier), explained: explained)
        say("\n" + report.text)
        guard report.isGood else { exit(1) }
    }
}
