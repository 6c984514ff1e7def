package monitor
import ("testing";"time";"fmt")
func TestTmpSpeed(t *testing.T) {
	f := aFile(.90,.02,.25,4,"app=support","app=sales","model=m1")
	c := f.Checks[0]; c.Name="facts"; f.Checks=append(f.Checks,c)
	w := newWorld(t, newEngine(t), f)
	for h := range 24 {
		for _, n := range []string{"refund","facts"} {
		w.now = w.now.Add(-time.Hour*time.Duration(btoi(n=="facts")))
		w.load(time.Hour, batch{check:n, slice: sliceOf("app=support,model=m1"), pi:.25, ok:80, pass:75}, batch{check:n, slice: sliceOf("app=sales,model=m2"), pi:.25, ok:80, pass:75})
		}
		start := time.Now(); w.round(); fmt.Println(h, time.Since(start))
	}
	fam,_ := w.reg.Gather()
	for _, f := range fam { if f.GetName()=="assay_monitor_refresh_seconds" { for _, m := range f.GetMetric() { fmt.Println(m.GetLabel(), m.GetHistogram().GetSampleSum()) } } }
}
func btoi(b bool) int { if b {return 1}; return 0 }
