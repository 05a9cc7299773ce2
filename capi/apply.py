import re,sys,os
dry='--go' not in sys.argv
g={}
for p in ['edits1.py','edits2.py','edits3.py','edits4.py']:
    if os.path.exists(p): exec(open(p).read(),g)
E=g['E']
base='/tmp/w/txt/Sources/ControlAPI/'
def interp(s):
    out=[];i=0
    while True:
        i=s.find('\\(',i)
        if i<0: return sorted(out)
        d=0;j=i+1
        while True:
            if s[j]=='(': d+=1
            if s[j]==')':
                d-=1
                if d==0: break
            j+=1
        out.append(s[i:j+1]); i=j
bad=0;n=0
for f,es in E.items():
    t=open(base+f).read()
    for o,nw in es:
        c=t.count(o)
        if c==0: print('MISSING',f,o[:120]); bad+=1; continue
        if c>1 and not o.startswith('"'): print('MULTI',f,c,o[:100])
        if c>1: print('  multi',f,c,o[:100])
        if interp(o)!=interp(nw): print('INTERP',f,interp(o),interp(nw)); bad+=1
        t=t.replace(o,nw); n+=c
    for k,l in enumerate(t.split('\n'),1):
        if len(l)>140: print('LONG',f,k,len(l),l.strip())
    if not dry: open(base+f,'w').write(t)
print('edits',n,'bad',bad)
